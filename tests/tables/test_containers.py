"""AnnData and MuData: modalities as views, files on disk, and results that are written back."""

import json
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from typer.testing import CliRunner

import lokl
from lokl.cli.app import app
from lokl.datasets import DatasetError
from lokl.datasets.readers import open_table, open_tables, write_container
from lokl.explain import explain
from lokl.kernels import RBF, per_view
from lokl.tables import TableError, read_table

with warnings.catch_warnings():
    # About names of future versions, and of packages that are not installed.
    warnings.simplefilter("ignore")
    anndata, mudata = (pytest.importorskip(name) for name in ("anndata", "mudata"))

pytestmark = pytest.mark.filterwarnings("ignore")

N = 60


def container(shift=0):
    """MuData of two modalities; the last samples lack proteins, and both have the gene TP53."""
    rng = np.random.RandomState(shift)
    ids = [f"P{shift + k:03}" for k in range(N)]
    ill = rng.rand(N) < 0.5
    counts = rng.poisson(3.0 + 6.0 * ill[:, None] * (np.arange(8) < 3), size=(N, 8))
    rna = anndata.AnnData(
        sparse.csr_matrix(counts.astype(np.float32)),
        obs=pd.DataFrame({"batch": pd.Categorical([f"B{k % 4}" for k in range(N)])}, index=ids),
        var=pd.DataFrame(index=["TP53", *(f"G{j}" for j in range(7))]),
        layers={"log1p": sparse.csr_matrix(np.log1p(counts).astype(np.float32))},
    )
    values = rng.normal(size=(N - 15, 5)) + 1.5 * ill[: N - 15, None]
    protein = anndata.AnnData(
        values, obs=pd.DataFrame(index=ids[: N - 15]),
        var=pd.DataFrame(index=["TP53", *(f"Q{j}" for j in range(4))]),
    )  # fmt: skip
    both = mudata.MuData({"rna": rna, "protein": protein})
    both.obs["ill"] = pd.Categorical(np.where(ill, "yes", "no"))
    both.obs["age"] = rng.randint(30, 80, size=N)
    return both


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("containers")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        write_container(container(), folder / "study.h5mu")
        write_container(container(100), folder / "new.h5mu")
        single = container()["rna"].copy()
        single.obs["ill"] = container().obs["ill"]
        write_container(single, folder / "rna.h5ad")
    return folder


def run(*arguments):
    result = CliRunner().invoke(app, [*map(str, arguments)])
    assert result.exit_code == 0, result.output
    return result


def test_tables_of_a_container(files):
    tables = open_tables(str(files / "study.h5mu"))
    assert [table.name for table in tables] == ["rna", "protein", "obs"]
    assert [table.is_view for table in tables] == [True, True, False]
    assert tables[1].frame.shape == (N - 15, 5)
    assert {"ill", "age", "batch"} <= {name.removeprefix("rna:") for name in tables[2].frame}
    layer = open_table(str(files / "study.h5mu:rna/log1p"))
    np.testing.assert_allclose(np.expm1(layer.frame), tables[0].frame, rtol=1e-5)
    single = open_tables(str(files / "rna.h5ad"))
    assert [table.name for table in single] == ["rna", "obs"]
    pd.testing.assert_frame_equal(single[0].frame, tables[0].frame)


@pytest.mark.parametrize(
    ("name", "named"),
    [("study.h5mu:rn", "rna"), ("study.h5mu:rna/log", "log1p"), ("rna.h5ad:raw", "log1p")],
)
def test_unknown_tables_and_layers_are_named(files, name, named):
    with pytest.raises(DatasetError, match=named):
        _ = open_table(str(files / name)).frame


def test_a_damaged_file_is_named(tmp_path):
    for ending in ("h5ad", "h5mu"):
        path = tmp_path / f"broken.{ending}"
        path.write_text("nothing")
        with pytest.raises(TableError, match=f"broken.{ending}"):
            read_table([str(path)], target="ill")


def test_modalities_are_views_and_obs_has_target_groups_and_covariates(files):
    table = read_table([str(files / "study.h5mu")], target="ill", covariates=["age"])
    assert [*table.views] == ["rna", "protein"]
    assert table.views["rna"][:2] == ["rna:TP53", "G0"]
    assert table.n_missing() == {"protein": 15}
    assert "age" not in {c for names in table.views.values() for c in names}
    assert table.covariates
    assert table.ids[0] == "P000"
    one = read_table([str(files / "rna.h5ad:log1p")], target=f"{files / 'rna.h5ad:obs'}:ill")
    assert [*one.views] == ["rna"]
    assert one.frame["G0"].max() < 4.0


def test_a_container_joins_files_with_a_column_of_ids(files, tmp_path):
    both = container()
    pd.DataFrame({"id": both.obs_names, "weight": np.arange(N) ** 2.0}).to_csv(
        tmp_path / "clinic.csv", index=False
    )
    table = read_table([str(files / "study.h5mu"), str(tmp_path / "clinic.csv")], on="id",
                       target="ill")  # fmt: skip
    assert [*table.views] == ["rna", "protein", "clinic"]
    assert table.frame.loc["P007", "weight"] == 49.0


def test_command_from_container_to_container(files, tmp_path):
    model, output = tmp_path / "ill.lokl", tmp_path / "out.h5mu"
    run("fit", files / "study.h5mu", "--target", "ill", "--method", "trusted vote", "-o", model)
    lines = run("predict", model, files / "new.h5mu").stdout.splitlines()
    run("predict", model, files / "new.h5mu", "-o", output)
    written = mudata.read_h5mu(output)
    predicted = [line.split(",")[1] for line in lines[1:]]
    assert written.obs["lokl_prediction"].astype(str).tolist() == predicted
    truth = container(100).obs["ill"]
    assert np.mean(written.obs["lokl_prediction"].astype(str) == truth.astype(str)) > 0.8
    assert list(written.obsm["lokl_trust"].columns) == ["rna", "protein"]
    shown = json.loads(
        run("explain", model, files / "new.h5mu", "--sample", "P150", "--json").stdout
    )
    assert [view["present"] for view in shown["views"]] == [True, False]
    refused = CliRunner().invoke(
        app, ["predict", str(model), str(files / "new.h5mu"), "-o", "a.csv"]
    )
    assert refused.exit_code == 2


def test_comparison_of_a_container_is_one_command(files, tmp_path):
    folder = tmp_path / "run"
    run(
        "compare", files / "study.h5mu", "--target", "ill", "--groups", "batch", "--methods",
        "uniform mix,views", "--folds", "3", "--repeats", "1", "--jobs", "1", "-o", folder,
    )  # fmt: skip
    assert "rna alone" in (folder / "results.csv").read_text()
    run("compare", folder / "config.toml")


def test_join_views_takes_containers():
    both = container()
    X, views = lokl.join_views(both)
    assert views["protein"] == ["protein:TP53", *(f"Q{j}" for j in range(4))]
    assert X.loc["P050", views["protein"]].isna().all()
    logged, _ = lokl.join_views({"rna": both["rna"]}, layers={"rna": "log1p"})
    np.testing.assert_allclose(np.expm1(logged["G0"]), X["G0"], rtol=1e-5)
    with pytest.raises(ValueError, match="log1p"):
        lokl.join_views(both, layers={"rna": "raw"})
    with pytest.raises(ValueError, match="dna"):
        lokl.join_views(both, layers={"dna": "raw"})


def test_explanation_is_written_by_ids():
    both = container()
    X, views = lokl.join_views(both)
    model = lokl.TrustedVoteClassifier(per_view(RBF(), views), random_state=0)
    y = both.obs.loc[X.index, "ill"].to_numpy()
    model.fit(X, y)
    rows = X.index[5:20]
    found = explain(model, X.loc[rows])
    found.write_to(both, prefix="vote")
    column = both.obs["vote_prediction"]
    assert column.loc[rows].tolist() == found.predictions.tolist()
    assert column.drop(rows).isna().all()
    np.testing.assert_allclose(both.obsm["vote_trust"].loc[rows], found.trust)
    with pytest.raises(ValueError, match="P100"):
        explain(model, X.set_axis([f"P{100 + k}" for k in range(N)])).write_to(both)
