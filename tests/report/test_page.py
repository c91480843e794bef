"""The page as text: whole, safe, small, and with everything on it."""

import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from report_cases import examples, explanation, report, with_equal_weights
from script_data import data_of, unpacked
from study_cases import like_a_study

from lokl.report import Interval, Report, render, write
from lokl.report.page import pack, pack_values

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
        self.handle_starttag(tag, attributes)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if not self.open or self.open[-1] not in {"script", "style"}:
            self.text.append(data)

    @property
    def words(self):
        return " ".join(" ".join(self.text).split())


SMALL = [name for name in examples() if name not in {"ten-thousand", "regression", "fitted"}]


@pytest.mark.parametrize("name", SMALL)
def test_every_kind_of_report_is_a_whole_page(name):
    content = examples()[name]()
    reader = Reader(render(content))
    assert len(reader.ids) == len(set(reader.ids))
    sections = [found for tag, found in reader.attributes if tag == "section"]
    assert all(found["aria-labelledby"] in reader.ids for found in sections)
    # Every link leads somewhere, every reference to a symbol or a label finds it.
    for tag, found in reader.attributes:
        if "href" in found:
            assert found["href"].startswith("#")
            assert found["href"][1:] in reader.ids
        if tag == "label" and "for" in found:
            assert found["for"] in reader.ids
        for banned in ("src", "onclick", "onload", "srcset", "action"):
            assert banned not in found
        if tag == "svg":
            assert found.get("aria-hidden") == "true" or found["aria-label"]
    assert not re.search(r"\b(nan|inf|None|undefined)\b", reader.words)


def test_the_parts_stand_in_their_order():
    reader = Reader(render(like_a_study()))
    parts = [found["id"] for tag, found in reader.attributes if tag == "section"]
    order = ["verdict", "glance", "better", "views", "trust", "why", "where", "believe", "made"]
    assert parts == order
    links = [found["href"][1:] for tag, found in reader.attributes if tag == "a"]
    assert links == ["verdict", *order]
    assert reader.words.index("Input") < reader.words.index("What the words mean")


def test_everything_is_on_the_page():
    content = report()
    words = Reader(render(content)).words
    for row in content.leaderboard:
        assert row.name in words
    for told in (content.verdict, content.findings[0].code, content.command, "95 91 to 98"):
        assert told in words


def test_without_a_script_pictures_and_tables_are_there():
    page = render(like_a_study())
    reader = Reader(page)
    tables = {found.get("id") for tag, found in reader.attributes if tag == "table"}
    assert {"leaderboard", "worth", "subsets", "votes", "listed", "confusion", "patterns"} <= tables
    assert {"inputs", "sources", "alignment"} <= tables
    assert "A uniform mix is as accurate." in reader.words
    assert page.count("<use ") >= 150
    assert 'id="trust-map"' in page


def test_the_page_allows_no_script_but_its_own():
    page = render(report())
    policy = next(
        found["content"]
        for tag, found in Reader(page).attributes
        if found.get("http-equiv") == "Content-Security-Policy"
    )
    assert "default-src 'none'" in policy
    assert re.search(r"script-src 'sha256-[A-Za-z0-9+/=]+'$", policy)


def test_nothing_is_asked_of_anybody():
    page = render(report())
    assert "http:" not in page
    assert "https:" not in page
    for tag, found in Reader(page).attributes:
        assert tag not in {"link", "img", "iframe"}
        assert "src" not in found


@pytest.mark.slow
@settings(max_examples=10, deadline=None)
@given(words=st.text(min_size=1, max_size=20))
def test_any_name_is_only_a_name(words):
    page = render(report(explanation(5), words=words, classes=[words, words + "!", words + "?"]))
    Reader(page)
    assert data_of(page)["views"][0] == f"{words} 0"


def test_names_cannot_become_code():
    words = "</script><script>alert(1)</script><b onclick=x>\u2028"
    page = render(report(explanation(5), words=words))
    assert page.count("<script") == 2
    assert "<b onclick" not in page


@settings(max_examples=50, deadline=None)
@given(values=st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=30), codes=st.data())
def test_packed_numbers_come_back(values, codes):
    found = unpacked(pack_values(np.array(values)))
    # A forty-thousandth of the range, and what floating point leaves of it.
    reach = np.ptp(values) / 40_000 + 1e-9 * np.abs(values).max()
    np.testing.assert_allclose(found, values, atol=0.51 * reach + 1e-12)
    whole = codes.draw(st.lists(st.integers(-1, 50_000), min_size=1, max_size=30))
    expected = [np.nan if code < 0 else code for code in whole]
    np.testing.assert_array_equal(unpacked(pack(whole)), expected)
    parts = np.array(codes.draw(st.lists(st.floats(0, 1), min_size=1, max_size=30)))
    np.testing.assert_allclose(unpacked(pack(parts, 1000)), parts, atol=0.000501)


def test_values_of_the_explanation_are_those_of_the_page():
    found = explanation(30)
    columns = data_of(render(report(found)))["columns"]
    np.testing.assert_allclose(unpacked(columns["trust"]), found.trust.ravel(), atol=6e-4)
    np.testing.assert_allclose(
        unpacked(columns["contributions"]), found.contributions.ravel(), atol=1e-4
    )
    np.testing.assert_array_equal(unpacked(columns["prediction"]), found.predicted_codes)
    np.testing.assert_array_equal(unpacked(columns["absent"]), np.flatnonzero(~found.presence))


@pytest.mark.slow
@pytest.mark.parametrize(("n", "n_classes", "most"), [(500, 4, 400_000), (10_000, 10, 1_500_000)])
def test_size(n, n_classes, most):
    assert len(render(like_a_study(n, 5, n_classes)).encode()) < most


def test_large_data_is_sampled_and_said_so():
    page = render(like_a_study(2000))
    words = Reader(page).words
    assert "400 samples are drawn of the" in words
    assert "1500 of 2000 samples are drawn, evenly spaced." in words
    assert page.count("<use ") < 2 * 1500 + 30


def test_a_page_without_an_explanation():
    Reader(render(Report("title", "verdict", "accuracy", [], [])))


def test_parts_that_do_not_fit_are_named():
    content = report()
    with pytest.raises(ValueError, match="3 views, but views has 2"):
        replace(content, views=content.views[:2])
    with pytest.raises(ValueError, match="classes has 2"):
        replace(content, classes=["a", "b"])
    near = replace(content.sample_map, neighbours=content.sample_map.neighbours[:3])
    for wrong in (None, near):
        with pytest.raises(ValueError, match="sample_map of 60"):
            replace(content, sample_map=wrong)


def test_weights_that_are_equal_for_all_samples_have_no_map():
    content = like_a_study()
    assert 'id="trust-map"' in render(content)
    equal = with_equal_weights(content)
    page = render(equal)
    assert 'id="trust-map"' not in page
    assert "All views count equally, for all samples." in Reader(page).words
    assert "mean weight" not in Reader(page).words
    assert 'class="n share"' not in page
    weights = equal.explanation.weights.copy()
    full = np.flatnonzero(equal.explanation.presence.all(axis=1))
    weights[full[:2]] = [[0.6, 0.2, 0.2], [0.2, 0.2, 0.6]]
    page = render(replace(equal, explanation=replace(equal.explanation, weights=weights)))
    assert 'id="trust-map"' in page
    assert "weights of a sample sum to one" in Reader(page).words


def test_intervals_of_shares_end_at_a_hundred():
    content = like_a_study()
    board = [replace(content.leaderboard[0], score=Interval(0.97, 0.9, 1.04))]
    assert "97 90 to 100" in Reader(render(replace(content, leaderboard=board))).words


def test_a_page_is_written_whole_or_not_at_all(tmp_path):
    path = tmp_path / "report.html"
    assert write(report(), path) == path
    before = path.read_bytes()
    broken = report()
    object.__setattr__(broken, "views", [None] * 3)
    with pytest.raises(Exception, match="None"):
        write(broken, path)
    assert path.read_bytes() == before
    assert [file.name for file in path.parent.iterdir()] == ["report.html"]


@pytest.mark.parametrize("name", SMALL)
def test_notebooks_show_a_short_table(name):
    content = examples()[name]()
    assert len(repr(content)) < 200
    shown = content._repr_html_()
    Reader(shown)
    assert len(shown) < 10_000
