"""Several tables as one: joined by id, absent rows and tables are missing views."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

import lokl
from lokl import LMKLClassifier, UniformMKLClassifier, join_views
from lokl.kernels import RBF, Linear, per_view
from lokl.search import CalibratedMKLClassifier


def frame(ids, columns, seed=0):
    rng = np.random.RandomState(seed)
    return pd.DataFrame(rng.normal(size=(len(ids), len(columns))), index=ids, columns=columns)


GENES = frame(["P1", "P2", "P3", "P4"], ["tp53", "myc"])
PROTEINS = frame(["P4", "P2", "P5"], ["tp53", "akt", "mtor"], seed=1)


@st.composite
def several_tables(draw):
    ids = [f"P{i}" for i in range(8)]
    names = draw(st.lists(st.sampled_from("abcd"), min_size=1, max_size=4, unique=True))
    tables = {}
    for name in names:
        rows = draw(st.lists(st.sampled_from(ids), min_size=1, max_size=8, unique=True))
        # One sample is in every table, so that none is a stranger.
        rows = list(dict.fromkeys([*rows, "P0"]))
        width = draw(st.integers(1, 3))
        tables[name] = frame(rows, [f"c{j}" for j in range(width)], draw(st.integers(0, 99)))
    return tables


@given(tables=several_tables())
def test_every_table_is_found_again_and_nothing_else(tables):
    X, views = join_views(tables)
    assert list(views) == list(tables)
    assert X.columns.is_unique
    assert X.index.is_unique
    assert set(X.index) == set().union(*(table.index for table in tables.values()))
    for name, table in tables.items():
        own = X[views[name]]
        np.testing.assert_array_equal(own.loc[table.index], table)
        assert own.drop(table.index).isna().all(axis=None)


@given(tables=several_tables(), seed=st.integers(0, 2**16))
def test_order_of_rows_and_columns_does_not_matter(tables, seed):
    rng = np.random.RandomState(seed)
    X, views = join_views(tables)
    shuffled = {
        name: tables[name].iloc[rng.permutation(len(tables[name])), ::-1]
        for name in rng.permutation(list(tables)).tolist()
    }
    again, same = join_views(shuffled, views=views)
    assert same == views
    pd.testing.assert_frame_equal(again.loc[X.index], X)


@given(tables=several_tables(), data=st.data())
def test_a_table_that_is_not_there_is_a_view_that_all_lack(tables, data):
    _, views = join_views(tables)
    fewer = data.draw(st.sets(st.sampled_from(sorted(tables)), min_size=1))
    X, _ = join_views({name: tables[name] for name in fewer}, views=views)
    assert list(X.columns) == [column for own in views.values() for column in own]
    for name in tables:
        if name in fewer:
            np.testing.assert_array_equal(X.loc[tables[name].index, views[name]], tables[name])
        else:
            assert X[views[name]].isna().all(axis=None)


def test_shared_columns_are_told_apart_and_others_keep_their_names():
    X, views = join_views({"genes": GENES, "proteins": PROTEINS})
    assert views == {
        "genes": ["genes:tp53", "myc"],
        "proteins": ["proteins:tp53", "akt", "mtor"],
    }
    assert list(X.index) == ["P1", "P2", "P3", "P4", "P5"]


def test_ids_in_a_column_and_numbers_of_any_kind():
    left = pd.DataFrame({"who": ["a", "b"], "n": [1, 2], "yes": [True, False]})
    right = pd.DataFrame({"who": ["b"], 0: pd.array([3], dtype="Int64"), 1: [4.5]})
    right[1] = right[1].astype(object)
    X, views = join_views({"left": left, "right": right}, on="who")
    assert views == {"left": ["n", "yes"], "right": ["0", "1"]}
    assert X.index.name == "who"
    np.testing.assert_array_equal(X, [[1, 1, np.nan, np.nan], [2, 0, 3, 4.5]])


def test_arrays_are_joined_row_by_row():
    A, B = np.ones((3, 2)), np.zeros((3, 1))
    B[1] = np.nan
    X, views = join_views({"a": A, "b": B})
    assert views == {"a": [0, 1], "b": [2]}
    np.testing.assert_array_equal(X, np.hstack([A, B]))
    X, same = join_views({"b": B}, views=views)
    assert same == views
    np.testing.assert_array_equal(X, np.hstack([np.full((3, 2), np.nan), B]))
    X, _ = join_views({"a": sparse.csr_matrix(A), "b": sparse.csr_matrix(A)})
    assert sparse.issparse(X)
    assert X.shape == (3, 4)


def changed(table, row, column, value):
    table = table.astype(object if isinstance(value, str) else float)
    table.loc[row, column] = value
    return table


@pytest.mark.parametrize(
    ("tables", "options", "message"),
    [
        ([GENES, PROTEINS], {}, "mapping.*list"),
        ({}, {}, "empty mapping"),
        ({"g": GENES["myc"]}, {}, r"table 'g'.*\(4,\)"),
        ({"g": 3}, {}, "table 'g'.*int"),
        ({"g": GENES[[]]}, {}, "table 'g'.* no columns"),
        ({"g": GENES, "a": np.ones((4, 1))}, {}, "table 'a' is an array"),
        ({"a": np.ones((4, 1)), "b": np.ones((3, 1))}, {}, "'a': 4, 'b': 3"),
        ({"a": np.ones((4, 1))}, {"on": "id"}, "on='id'"),
        ({"a": np.array([["x"]])}, {}, "table 'a'.*'x'"),
        ({"g": GENES}, {"on": "id"}, "table 'g'.*column id.*tp53, myc"),
        ({"g": pd.concat([GENES, GENES.loc[["P2"]]])}, {}, "table 'g'.*duplicate id 'P2'"),
        ({"g": frame(["P1"], ["a", "a"])}, {}, "table 'g'.*duplicate column name 'a'"),
        ({"g": frame(["P1", None], ["a"])}, {}, "table 'g', row 1: .* missing"),
        ({"g": GENES.set_index("myc", append=True)}, {}, "table 'g'.* 2 levels"),
        (
            {"g": changed(GENES, "P3", "myc", "high")},
            {},
            "table 'g', column 'myc', id 'P3': 'high'",
        ),
        (
            {"g": changed(GENES, "P3", "myc", np.nan)},
            {},
            "table 'g', column 'myc', id 'P3':.* missing",
        ),
        (
            {"g": changed(GENES, "P3", "myc", np.inf)},
            {},
            "table 'g', column 'myc', id 'P3':.* infinite",
        ),
        ({"g": frame(range(3), ["a"]), "p": frame(range(2), ["b"])}, {}, "'g': 3, 'p': 2"),
        (
            {"g": frame([7, 8], ["a"]), "p": frame(["7", "8"], ["b"])},
            {},
            r"'g': 7 \(number\), 'p': '7' \(str\)",
        ),
        (
            {"g": frame(["P1"], ["x", "p:x"]), "p": frame(["P1"], ["x"])},
            {},
            "column 'p:x'.*'p'.*'g'",
        ),
        ({"q": GENES}, {"views": {"g": ["a"]}}, "table 'q'.* g$"),
        ({"g": GENES}, {"views": {"g": ["tp53", "akt"]}}, "table 'g'.*column 'akt'"),
        ({"g": GENES}, {"views": {"g": ["tp53"]}}, "table 'g'.*column 'myc'"),
        ({"a": np.ones((4, 1))}, {"views": {"a": [0, 1]}}, "table 'a'.* 1 columns.* 2 "),
    ],
)
def test_what_cannot_be_joined_is_named(tables, options, message):
    with pytest.raises(ValueError, match=message):
        join_views(tables, **options)


def test_tables_without_a_common_sample_are_told():
    message = "table 'b'.*'a': 'P1', table 'b': 'p1'"
    with pytest.warns(UserWarning, match=message):
        join_views({"a": frame(["P1", "P2"], ["x"]), "b": frame(["p1", "p2"], ["y"])})
    _, views = join_views({"a": frame(["P1"], ["x"]), "b": frame(["P1"], ["y"])})
    join_views({"a": frame(["P7"], ["x"]), "b": frame(["P8"], ["y"])}, views=views)


def patients(n=80, seed=0):
    """Two tables that lack some samples, and labels."""
    rng = np.random.RandomState(seed)
    y = pd.Series(rng.randint(3, size=n), index=[f"P{i}" for i in range(n)])
    tables = {
        name: pd.DataFrame(rng.normal(size=(n, 2)), index=y.index, columns=columns).add(
            y.eq(k).astype(float) * 2, axis=0
        )
        for k, (name, columns) in enumerate(
            {"blood": ["iron", "b12"], "mri": ["size", "b12"]}.items()
        )
    }
    return {"blood": tables["blood"].iloc[:-10], "mri": tables["mri"].iloc[10:]}, y


@pytest.mark.parametrize("kind", [UniformMKLClassifier, LMKLClassifier])
def test_a_table_without_the_columns_of_a_view_lacks_the_view(kind):
    tables, y = patients()
    X, views = join_views(tables)
    model = kind(per_view(RBF("scale"), views), random_state=0).fit(X, y.loc[X.index])
    alone = tables["blood"].add_prefix("").rename(columns={"b12": "blood:b12"})
    joined, _ = join_views({"blood": tables["blood"]}, views=views)
    for name in ("predict", "decision_function", "weights", "contributions"):
        np.testing.assert_array_equal(getattr(model, name)(alone), getattr(model, name)(joined))
    # By name: their order does not matter then.
    np.testing.assert_array_equal(model.predict(alone[alone.columns[::-1]]), model.predict(joined))
    assert (model.weights(alone)[:, 1] == 0).all()
    sure = CalibratedMKLClassifier(kind(per_view(RBF("scale"), views), random_state=0))
    chance = sure.fit(X, y.loc[X.index]).predict_proba(alone)
    np.testing.assert_array_equal(chance, sure.predict_proba(joined))


def test_a_part_of_a_view_or_a_stranger_is_no_missing_view():
    tables, y = patients()
    X, views = join_views(tables)
    kernels = per_view(RBF("scale"), views)
    model = UniformMKLClassifier(kernels).fit(X, y.loc[X.index])
    with pytest.raises(ValueError, match="X lacks column 'size' of the view of kernel 'mri', but"):
        model.predict(X.drop(columns="size"))
    strange = X.drop(columns=views["mri"]).assign(misspelt=1.0)
    with pytest.raises(ValueError, match=r"(?s)unseen at fit time:.*misspelt"):
        model.predict(strange)
    with pytest.raises(ValueError, match="same order"):
        model.predict(X[X.columns[::-1]])
    whole = UniformMKLClassifier([Linear()]).fit(X.fillna(0.0), y.loc[X.index])
    with pytest.raises(ValueError, match="now missing"):
        whole.predict(X.drop(columns=views["mri"]))
    with pytest.raises(ValueError, match="lacks every view"):
        model.predict(X[[]])


@pytest.mark.slow
def test_join_views_and_labels_say_when_pandas_is_not_there():
    code = """
import sys
sys.modules["pandas"] = None
import numpy as np, lokl
X = np.random.RandomState(0).normal(size=(20, 2))
lokl.join_views({"a": X, "b": X})
model = lokl.UniformMKLClassifier(["rbf"]).fit(X, X[:, 0] > 0)
try:
    model.weights(X, labels=True)
except ImportError as error:
    assert "labels=True needs pandas; install it with: pip install 'lokl[data]'" in str(error)
else:
    raise SystemExit("no error")
"""
    source = str(next(iter(lokl.__path__))).removesuffix("lokl")
    done = subprocess.run(
        [sys.executable, "-c", code], env={"PYTHONPATH": source}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
