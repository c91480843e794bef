"""The page as text: whole, safe, small, and with everything on it."""

import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from report_cases import cases, report

from lokl import TrustedVoteClassifier, UniformMKLClassifier, UniformMKLRegressor
from lokl.datasets import make_views
from lokl.kernels import RBF, per_view
from lokl.report import cases_of, render, write
from lokl.report.reliability import reliability

VOID = {"meta", "input", "link", "br"}


class Reader(HTMLParser):
    """Checks that elements end where they should, and collects what a test asks for."""

    def __init__(self, page):
        super().__init__()
        self.open, self.ids, self.attributes, self.text = [], [], [], []
        self.feed(page)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        self.ids += [found["id"]] if "id" in found else []
        self.attributes.append((tag, found))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.attributes.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def data_of(page):
    return json.loads(re.search(r'id="data">(.*?)</script>', page, re.DOTALL).group(1))


def test_everything_is_on_the_page():
    content = report()
    page = render(content)
    reader = Reader(page)
    assert len(reader.ids) == len(set(reader.ids))
    text = " ".join(reader.text)
    for row in content.leaderboard:
        assert row.name in text
    for words in (
        content.verdict,
        content.findings[0].code,
        content.command,
        "95.0 (91.0 to 98.0)",
    ):
        assert words in text
    labels = {found["aria-labelledby"] for tag, found in reader.attributes if tag == "section"}
    assert labels <= set(reader.ids)
    assert len(labels) == 7


def test_nothing_is_asked_of_anybody():
    page = render(report())
    assert "http:" not in page
    assert "https:" not in page
    for tag, found in Reader(page).attributes:
        assert tag not in {"link", "img", "iframe"}
        assert "src" not in found
        assert found.get("href", "#").startswith("#")


@settings(max_examples=25, deadline=None)
@given(words=st.text(min_size=1, max_size=20))
def test_any_name_is_only_a_name(words):
    page = render(report(cases(5), words=words, classes=[words, words + "!", words + "?"]))
    Reader(page)
    assert data_of(page)["views"][0] == f"{words} 0"


def test_names_cannot_become_code():
    words = "</script><script>alert(1)</script><b onclick=x>\u2028"
    page = render(report(cases(5), words=words))
    assert page.count("<script") == 2
    assert "<b onclick" not in page


def test_numbers_of_the_cases_are_those_of_the_page():
    found = cases(30)
    data = data_of(render(report(found)))
    np.testing.assert_allclose(data["trust"], 100 * found.trust, atol=0.51)
    np.testing.assert_allclose(data["parts"], 100 * found.parts, atol=0.51)
    assert data["predicted"] == found.predicted.tolist()
    absent = np.zeros(found.present.shape, dtype=bool)
    for row, view in data["absent"]:
        absent[row, view] = True
    np.testing.assert_array_equal(absent, ~found.present)


@pytest.mark.parametrize(("n", "most"), [(500, 400_000), (10_000, 1_500_000)])
def test_size(n, most):
    assert len(render(report(cases(n, n_views=5))).encode()) < most


def test_a_page_without_cases():
    Reader(render(report().__class__("title", "verdict", "accuracy", [], [])))


@pytest.fixture(scope="module")
def problem():
    X, y, views, _ = make_views(90, 3, missing=0.2, random_state=0)
    return X, y, per_view(RBF("scale"), views)


@pytest.mark.parametrize("kind", [TrustedVoteClassifier, UniformMKLClassifier])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_cases_are_what_the_model_says(problem, kind, n_classes):
    X, y, kernels = problem
    y = np.array(["a", "b", "c"])[y if n_classes == 2 else np.arange(len(y)) % 3]
    model = kind(kernels, 10.0, random_state=0).fit(X, y)
    found = cases_of(model, X, y)
    np.testing.assert_array_equal(model.classes_[found.predicted], model.predict(X))
    np.testing.assert_array_equal(model.classes_[found.truth], y)
    ranked = np.sort(model.decision_function(X).reshape(len(X), -1), axis=1)
    expected = ranked[:, -1] - ranked[:, -2] if n_classes == 3 else np.abs(ranked[:, 0])
    np.testing.assert_allclose(found.start + found.parts.sum(axis=1), expected, atol=1e-6)
    np.testing.assert_array_equal(found.present[:, 0], ~np.isnan(X[:, 0]))
    assert all(k not in near for k, near in enumerate(found.near))
    Reader(render(report(found, classes=list(model.classes_))))


def test_cases_of_a_regression(problem):
    X, _, kernels = problem
    target = np.arange(len(X)) / 10
    model = UniformMKLRegressor(kernels).fit(X, target)
    found = cases_of(model, X, target, ids=[f"s{k}" for k in range(len(X))])
    np.testing.assert_allclose(found.start + found.parts.sum(axis=1), model.predict(X), atol=1e-6)
    page = render(report(found, classes=[]))
    assert "believe the probabilities" not in " ".join(Reader(page).text)


def test_reliability_counts():
    found = cases(200)
    judged = reliability(found, ["a", "b", "c"])
    assert np.sum(judged.confusion) == 200
    right = np.trace(judged.confusion) / 200
    assert judged.risk[0] == (1.0, pytest.approx(1 - right))
    assert sum(pattern.n_samples for pattern in judged.patterns) == 200


def test_a_page_is_written_whole_or_not_at_all(tmp_path):
    path = tmp_path / "run" / "report.html"
    assert write(report(), path) == path
    before = path.read_bytes()
    broken = report()
    object.__setattr__(broken, "views", [None])
    with pytest.raises(Exception, match="None"):
        write(broken, path)
    assert path.read_bytes() == before
    assert [file.name for file in path.parent.iterdir()] == ["report.html"]
