"""Kernels of gene sets, and files in GMT format."""

import gzip

import numpy as np
import pandas as pd
import pytest

import lokl
from lokl.kernels import RBF, Linear, per_gene_set, read_gmt

TEXT = "repair\thttp://x\tBRCA1\tBRCA2\tATM\tATM\n\ngrowth\t\tEGFR\tERBB2\t\tMYC\r\n"
SETS = {"repair": ["BRCA1", "BRCA2", "ATM"], "growth": ["EGFR", "ERBB2", "MYC"]}


@pytest.mark.parametrize("name", ["sets.gmt", "sets.gmt.gz"])
def test_sets_are_read(tmp_path, name):
    content = TEXT.encode()
    path = tmp_path / name
    path.write_bytes(gzip.compress(content) if name.endswith("gz") else content)
    assert read_gmt(path) == SETS
    assert read_gmt(str(path)) == SETS


@pytest.mark.parametrize(
    ("text", "named"),
    [("a\tb\n", "line 1"), ("a\tb\tc\na\tb\td\n", "line 2.*'a'"), ("\n", "no gene sets")],
)
def test_bad_files_are_named(tmp_path, text, named):
    path = tmp_path / "bad.gmt"
    path.write_text(text)
    with pytest.raises(ValueError, match=named):
        read_gmt(path)


def test_kernels_have_the_columns_of_their_genes():
    frame = pd.DataFrame(
        np.random.RandomState(0).normal(size=(40, 6)),
        columns=["MYC", "ATM", "other", "BRCA1", "EGFR", "BRCA2"],
    )
    kernels = per_gene_set(RBF(0.5), frame, SETS, min_size=2)
    assert {name: kernel.columns for name, kernel in kernels.items()} == {
        "repair": [1, 3, 5],
        "growth": [0, 4],
    }
    assert [*per_gene_set(RBF(), list(frame), SETS, min_size=3)] == ["repair"]
    twice = per_gene_set(Linear(), ["ATM", "BRCA1", "ATM"], SETS, min_size=3)
    assert twice["repair"].columns == [0, 1, 2]
    y = frame["ATM"] + frame["BRCA1"] > 0
    model = lokl.SimpleMKLClassifier(kernels, C=10).fit(frame, y)
    assert model.weights_[model.kernel_names_.index("repair")] > 0.7


def test_sets_without_columns_are_an_error_that_names_columns():
    with pytest.raises(ValueError, match="ENSG01"):
        per_gene_set(RBF(), ["ENSG01", "ENSG02"], SETS)
    with pytest.raises(ValueError, match="min_size"):
        per_gene_set(RBF(), ["ATM"], SETS, min_size=0)
