"""Covariates of tables: adjusted for inside the model, or a view of their own."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression
from typer.testing import CliRunner

from lokl.cli.app import app
from lokl.explain import explain
from lokl.persistence import info, load, save
from lokl.study.candidates import all_samples
from lokl.tables import TableError, read_table
from lokl.tables.adjustment import CovariateAdjustment
from lokl.tables.learning import learn, preparation_for
from lokl.tables.preparation import schema_of
from lokl.tables.table import read_new

runner = CliRunner()
KINDS = {"batch": "categorical"}


@pytest.fixture
def files(tmp_path):
    """Two views with effects of batch and age, and what is known of the samples."""
    rng = np.random.RandomState(0)
    n = 60
    ids = [f"P{row:02d}" for row in range(n)]
    ill, batch, age = rng.randint(2, size=n), rng.randint(3, size=n), rng.normal(60, 8, size=n)
    paths = []
    for name, width in (("rna", 4), ("protein", 3)):
        values = rng.normal(size=(n, width)) + 1.5 * ill[:, None]
        values += 6 * batch[:, None] * rng.normal(size=width) + 0.5 * (age - 60)[:, None]
        columns = [f"{name}{column}" for column in range(width)]
        frame = pd.DataFrame(values, pd.Index(ids, name="id"), columns)
        paths.append(str(tmp_path / f"{name}.csv"))
        frame.iloc[5 * (name == "protein") :].to_csv(paths[-1])
    known = {"ill": np.where(ill, "yes", "no"), "age": age, "batch": batch + 1, "town": "A"}
    # Other rows, in another order.
    clinic = pd.DataFrame({"id": ids, **known}).iloc[::-1]
    more = pd.DataFrame({"id": ["X"], "ill": ["yes"], "age": [50.0], "batch": [1], "town": ["A"]})
    paths.append(str(tmp_path / "clinic.csv"))
    pd.concat([more, clinic]).to_csv(paths[-1], index=False)
    return paths


def with_covariates(files, how="adjust", **more):
    rna, protein, clinic = files
    columns = [f"{clinic}:age", "batch"]
    settings = {"covariates": columns, "covariates_as": how, "kinds": KINDS, **more}
    return read_table([rna, protein], on="id", target=f"{clinic}:ill", **settings)


@pytest.mark.parametrize("seed", range(5))
def test_residuals_are_those_of_a_regression(seed):
    rng = np.random.RandomState(seed)
    C = np.column_stack([rng.normal(size=30), rng.randint(2, size=30)])
    X = rng.normal(size=(30, 4)) + C @ rng.normal(size=(2, 4))
    X[rng.rand(30, 4) < 0.1] = np.nan
    X[:5, 2:] = np.nan
    adjusted = CovariateAdjustment().fit(X, C).transform(X, C)
    np.testing.assert_array_equal(np.isnan(adjusted), np.isnan(X))
    for column, found in zip(X.T, adjusted.T, strict=True):
        known = ~np.isnan(column)
        model = LinearRegression().fit(C[known], column[known])
        effect = (C[known] - C.mean(axis=0)) @ model.coef_
        np.testing.assert_allclose(found[known], column[known] - effect, atol=1e-10)


def test_covariates_that_determine_each_other_and_missing_ones():
    rng = np.random.RandomState(0)
    batch = rng.randint(3, size=30)
    C = np.eye(3)[batch]
    X = rng.normal(size=(30, 2)) + 5 * batch[:, None]
    adjusted = CovariateAdjustment().fit(X, C).transform(X, C)
    means = [adjusted[batch == one].mean(axis=0) for one in range(3)]
    np.testing.assert_allclose(means, np.tile(X.mean(axis=0), (3, 1)), atol=1e-10)
    # The mean of a missing covariate leaves the column as it is.
    model = CovariateAdjustment().fit(X, C)
    np.testing.assert_array_equal(model.transform(X, np.full((30, 3), np.nan)), X)


def test_the_effect_is_learned_from_training_rows_only(files):
    table = with_covariates(files)
    assert table.covariates == ("age", "batch")
    assert list(table.views) == ["rna", "protein"]
    assert len(table.ids) == 60
    samples = all_samples(table, seed=0)
    train, test = np.arange(40), np.arange(40, 60)
    preparation, _ = samples.take(train).prepared()
    found = preparation.transform(samples.take(test).frame)
    # Other samples in the test part change nothing about the others.
    changed = samples.frame.copy()
    changed.iloc[50:, changed.columns.get_indexer(["age", "rna0"])] = 1e3
    again = preparation.transform(changed.iloc[test])
    np.testing.assert_array_equal(found[:10], again[:10])
    C = pd.get_dummies(samples.frame[["age", "batch"]], dtype=float).to_numpy()
    model = LinearRegression().fit(C[train], samples.frame["rna0"].iloc[train])
    expected = samples.frame["rna0"].iloc[test] - (C[test] - C[train].mean(axis=0)) @ model.coef_
    np.testing.assert_allclose(found[:, 0], expected, atol=1e-8)


def test_adjusted_models_predict_from_raw_files(files, tmp_path):
    rna, protein, clinic = files
    table = with_covariates(files)
    model = learn(table, "uniform")
    plain = learn(read_table([rna, protein], on="id", target=f"{clinic}:ill"), "uniform")
    y = table.target.to_numpy()
    assert model.score(table.frame, y) > plain.score(table.frame, y) + 0.1
    save(model, tmp_path / "m.lokl")
    assert info(tmp_path / "m.lokl")["input"]["covariates"] == ["age", "batch"]
    loaded = load(tmp_path / "m.lokl")
    new = read_new(files, schema_of(loaded))
    # The clinical file has one more row, which has no view.
    assert sorted(new.ids) == sorted(table.ids)
    np.testing.assert_array_equal(
        loaded.predict_proba(new.frame.loc[table.ids]), model.predict_proba(table.frame)
    )
    assert explain(loaded, new.frame, ids=new.ids).learned.all()
    columns = explain(model, table.frame, columns=True).columns
    assert columns.columns == [*table.views["rna"], *table.views["protein"]]
    # Views may be absent, but no covariate.
    absent = read_new([rna, clinic], schema_of(loaded))
    assert len(loaded.predict(absent.frame)) == 60
    with pytest.raises(TableError, match="age"):
        loaded.predict(read_new([rna, protein], schema_of(loaded)).frame)


def test_covariates_as_a_view(files):
    table = with_covariates(files, how="view")
    assert table.covariates == ()
    assert table.views["covariates"] == ["age", "batch"]
    assert preparation_for(table).fit(table.frame).adjustment_ is None
    model = learn(table, "uniform")
    assert explain(model, table.frame).views == ["rna", "protein", "covariates"]
    new = read_new(files, schema_of(model))
    np.testing.assert_array_equal(
        model.predict(new.frame.loc[table.ids]), model.predict(table.frame)
    )


def test_covariates_of_a_view_are_not_its_features(files):
    rna, _, clinic = files
    table = read_table([rna, clinic], on="id", target="ill", covariates=["age"])
    assert table.views == {"rna": ["rna0", "rna1", "rna2", "rna3"], "clinic": ["batch"]}
    assert "age" in table.frame


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"covariates": ["nothing"]}, "nothing"),
        ({"covariates": ["town"]}, "town.*constant"),
        ({"covariates": ["ill"]}, "ill.*target"),
        ({"covariates": ["age", "age"]}, "age.*twice"),
        ({"covariates": ["age"], "covariates_as": "views"}, "views.*did you mean view"),
    ],
)
def test_covariates_that_cannot_be_used(files, more, words):
    rna, _, clinic = files
    with pytest.raises(TableError, match=words):
        read_table([rna, clinic], on="id", target="ill", **more)


def test_a_comparison_says_what_is_done_with_covariates(files, tmp_path):
    rna, protein, clinic = files
    command = ["compare", rna, protein, "--on", "id", "--target", f"{clinic}:ill"]
    command += ["--folds", "3", "--repeats", "1", "--jobs", "1", "--methods", "uniform mix"]
    command += ["--kind", "batch=categorical", "-o", str(tmp_path / "run")]
    done = runner.invoke(app, [*command, "--covariates", f"{clinic}:age, batch", "--json"])
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert found["covariates"] == {"columns": [f"{clinic}:age", "batch"], "as": "adjust"}
    assert found["candidates"][0]["score"] > 0.75
    assert "covariates age, batch: their linear effect" in " ".join(done.stderr.split())
    assert "their linear effect" in (tmp_path / "run" / "report.html").read_text()
    # The settings file runs the same again, and fits the chosen model.
    config = str(tmp_path / "run" / "config.toml")
    assert runner.invoke(app, ["compare", config, "--json"]).exit_code == 0
    fitted = runner.invoke(app, ["fit", config, "-o", str(tmp_path / "m.lokl")])
    assert fitted.exit_code == 0, fitted.output
    assert info(tmp_path / "m.lokl")["input"]["covariates"] == ["age", "batch"]
