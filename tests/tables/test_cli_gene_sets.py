"""Gene sets in the command: sets of generated tables whose truth is known."""

import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from lokl import persistence
from lokl.base.model import unwrap
from lokl.cli.app import app
from lokl.explain import explain, gene_set_importance
from lokl.explain.gene_sets import group_overlaps
from lokl.tables import TableError, read_table

GENES, SIZE = 160, 8
INFORMATIVE = ("pathway 1", "pathway 5")


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Paths of a table whose target depends on two sets, and of a GMT file of sets."""
    folder = tmp_path_factory.mktemp("sets")
    rng = np.random.RandomState(0)
    names = [f"G{j}" for j in range(GENES)]
    X = rng.normal(size=(150, GENES))
    signal = X[:, 8:16].sum(axis=1) + X[:, 40:48].sum(axis=1) + 0.5 * rng.normal(size=150)
    frame = pd.DataFrame(X, columns=names)
    frame.insert(0, "id", [f"P{k:03}" for k in range(150)])
    frame["ill"] = np.where(signal > 0, "yes", "no")
    frame.iloc[:120].to_csv(folder / "mrna.csv", index=False)
    frame.iloc[120:].to_csv(folder / "new.csv", index=False)
    sets = {f"pathway {k}": names[SIZE * k : SIZE * (k + 1)] for k in range(16)}
    sets |= {"twin of 1": [*names[9:16], "unknown"], "short": names[:2]}
    lines = ("\t".join([name, "", *genes]) for name, genes in sets.items())
    (folder / "sets.gmt").write_text("\n".join(lines))
    return folder


def read(files, **options):
    return read_table(
        [str(files / "mrna.csv")], on="id", target="ill",
        gene_sets=str(files / "sets.gmt"), **options,
    )  # fmt: skip


def run(*arguments):
    result = CliRunner().invoke(app, [*map(str, arguments)])
    assert result.exit_code == 0, result.output
    return result


def test_sets_are_matched_by_name_and_what_was_matched_is_noted(files):
    table = read(files)
    assert len(table.gene_sets) == 17
    assert table.gene_sets["twin of 1"] == [f"G{j}" for j in range(9, 16)]
    assert "short" not in table.gene_sets
    assert any("17 of 18" in note and "128 of 160" in note for note in table.notes)
    rest = read(files, gene_sets_rest="others", gene_sets_size=8)
    assert rest.gene_sets["others"] == [f"G{j}" for j in range(128, 160)]
    assert "twin of 1" not in rest.gene_sets


def test_sets_that_do_not_fit_are_an_error_that_names_file_and_columns(files, tmp_path):
    other = tmp_path / "other.gmt"
    other.write_text("a\t\tENSG1\tENSG2\n")
    with pytest.raises(TableError, match=r"G0.*other\.gmt"):
        read_table([str(files / "mrna.csv")], on="id", target="ill", gene_sets=str(other))
    with pytest.raises(TableError, match="others"):
        read_table([str(files / "mrna.csv")], on="id", target="ill", gene_sets_rest="others")
    with pytest.raises(TableError, match="pathway 1"):
        read(files, gene_sets_rest="pathway 1")


def test_informative_sets_are_found_and_name_predictions_of_raw_files(files, tmp_path):
    model = tmp_path / "model.lokl"
    run(
        "fit", files / "mrna.csv", "--on", "id", "--target", "ill",
        "--gene-sets", files / "sets.gmt", "-o", model,
    )  # fmt: skip
    output = run("explain", model, files / "new.csv", "--sample", "P130", "--json").stdout
    named = json.loads(output)["gene_sets"]
    assert {"pathway 1", "pathway 5", "twin of 1"} & {own["column"] for own in named}
    fitted, table = persistence.load(model), pd.read_csv(files / "new.csv", index_col="id")
    lines = run("predict", model, files / "new.csv").stdout.splitlines()[1:]
    predicted = [line.split(",")[1] for line in lines]
    assert predicted == fitted.predict(table).tolist()
    assert np.mean(table["ill"].to_numpy() == predicted) > 0.75
    importance = gene_set_importance(fitted, table, random_state=0)
    # Of two sets that share most of their columns one may take the place of the other.
    leaders = [importance.rows[int(g)] for g in dict.fromkeys(importance["group"].tolist())]
    found = {name.replace("twin of", "pathway") for name in leaders[:2]}
    assert found == set(INFORMATIVE)
    assert importance.row("pathway 1")["group"] == importance.row("twin of 1")["group"]


def test_contributions_of_sets_add_up_to_those_of_their_view(files, tmp_path):
    from lokl.tables.learning import learn

    table = read(files)
    model = learn(table, "uniform")
    found = explain(model, table.frame)
    assert found.views == ["mrna"]
    assert found.gene_sets.columns == list(unwrap(model)[0].kernel_names_)
    # Both are sums of the same numbers.
    assert np.abs(found.gene_sets.by_view() - found.contributions).max() < 1e-8


def test_comparison_has_gene_sets_as_a_candidate_and_reports_groups(files, tmp_path):
    folder = tmp_path / "run"
    output = run(
        "compare", files / "mrna.csv", "--on", "id", "--target", "ill", "--gene-sets",
        files / "sets.gmt", "--methods", "gene sets,uniform mix", "--folds", "3", "--repeats", "1",
        "--jobs", "1", "-o", folder, "--json",
    ).stdout  # fmt: skip
    assert json.loads(output)["chosen"] == "gene sets"
    page = (folder / "report.html").read_text()
    assert 'id="gene-sets"' in page
    assert "similar: " in page
    # The settings file refers to the sets, and runs the comparison again.
    assert "sets.gmt" in (folder / "config.toml").read_text()
    run("compare", folder / "config.toml")


def test_groups_are_led_by_the_most_important_set():
    sets = [{1, 2, 3, 4}, {7, 8}, {1, 2, 3}, {3, 4, 5, 6, 7}, {8, 7}]
    assert group_overlaps(sets, 0.5).tolist() == [0, 1, 0, 3, 1]
    assert group_overlaps(sets, 1.0).tolist() == [0, 1, 2, 3, 1]


def test_each_table_has_sets_of_its_own(files, tmp_path):
    frame = pd.read_csv(files / "mrna.csv").drop(columns="ill")
    frame.iloc[:80].to_csv(tmp_path / "protein.csv", index=False)
    table = read_table(
        [str(files / "mrna.csv"), str(tmp_path / "protein.csv")],
        on="id", target=f"{files / 'mrna.csv'}:ill", gene_sets=str(files / "sets.gmt"),
    )  # fmt: skip
    assert len(table.gene_sets) == 2 * 17
    assert table.gene_sets["protein: pathway 0"][0] == "protein:G0"
