"""Damaged and hostile files of every format: a table, or one line that names the file.

40 cases for each format; LOKL_FUZZ_CASES sets another number.
"""

import gzip
import io
import os
import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from table_cases import BLOOD

from lokl.datasets import DatasetError, read
from lokl.study.settings import Settings, load_settings
from lokl.tables import TableError, read_table

CASES = int(os.environ.get("LOKL_FUZZ_CASES", "40"))
FRAME = BLOOD.drop(columns="group")
NASTY = [
    *(b"9" * 400, b"-", b"1e999", b"nan", b"inf", b"0x1p3", b"1_0", b"\0", b"\r", b"\r\n", b'"'),
    *(b",", b";", b"\t", b"\xff\xfe", b"\xef\xbb\xbf", b"\xf0\x9f\x98\x80", b"=1+1", b" ", b"#"),
    *(b"<script>", b"../../etc/passwd", b"2147483648:1", b"-1:1", b"0:1", b"qid:1", b"\x1a"),
    *(b"PAR1", b"PK\x03\x04", b"\x93NUMPY", b"ARROW1", b"\x7f\xff\xff\xff\xff\xff\xff\xff"),
]


def _written(name):
    """The bytes of a table in a format."""
    stream = io.BytesIO()
    numbers = FRAME.drop(columns="patient")
    if name == "t.parquet":
        FRAME.to_parquet(stream)
    elif name == "t.feather":
        FRAME.to_feather(stream)
    elif name == "t.xlsx":
        FRAME.to_excel(stream, index=False)
    elif name == "t.npz":
        np.savez_compressed(stream, X=numbers.to_numpy(), y=np.arange(len(numbers)) % 2)
    elif name == "t.svm":
        rows = numbers.to_numpy()
        return b"".join(b"%d 1:%g 3:%g\n" % (k % 2, *row) for k, row in enumerate(rows))
    elif name == "t.toml":
        return Settings(("t.csv",), on="patient", target="iron").stored().to_toml("").encode()
    else:
        FRAME.to_csv(stream, index=False, sep="\t" if "tsv" in name else ",")
    content = stream.getvalue()
    return gzip.compress(content) if name.endswith(".gz") else content


NAMES = ["t.csv", "t.tsv", "t.csv.gz", "t.svm", "t.parquet", "t.feather", "t.xlsx", "t.npz"]
SETTINGS = "t.toml"
places = st.floats(0, 1, exclude_max=True)
changes = st.lists(
    st.one_of(
        st.tuples(st.just("byte"), places, st.integers(0, 255)),
        st.tuples(st.just("insert"), places, st.sampled_from(NASTY)),
        st.tuples(st.just("cut"), places, st.integers(1, 200)),
        st.tuples(st.just("end"), places, st.none()),
        st.tuples(st.just("repeat"), places, st.integers(1, 200)),
    ),
    min_size=1,
    max_size=5,
)


def mutated(content, steps):
    for kind, place, value in steps:
        at = int(place * len(content))
        if kind == "byte":
            content = content[:at] + bytes([value]) + content[at + 1 :]
        elif kind == "insert":
            content = content[:at] + value + content[at:]
        elif kind == "cut":
            content = content[:at] + content[at + value :]
        elif kind == "end":
            content = content[:at]
        else:
            content = content[:at] + content[at : at + value] * 3 + content[at:]
    return content


def check_one_line(call, *kinds):
    """Call; errors are of these kinds and one line of bounded length."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            return call()
    except kinds as reason:
        text = str(reason)
        assert text
        assert text.isprintable()
        assert len(text) <= 1001
        return None


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=CASES)
@given(steps=changes, on=st.booleans())
def test_any_file_is_a_table_or_an_error(tmp_path_factory, name, steps, on):
    path = tmp_path_factory.getbasetemp() / name
    path.write_bytes(mutated(_written(name), steps))
    options = {"on": "patient"} if on else {}
    table = check_one_line(lambda: read_table([str(path)], **options), TableError)
    if table is not None:
        numbers = table.frame[[c for c, kind in table.kinds.items() if kind == "numeric"]]
        assert not np.isinf(numbers.to_numpy(dtype=float)).any()
        assert all(table.frame.columns.isin(list(table.kinds)))
    columns = None if name in ("t.svm", "t.npz") else ["iron", "sugar"]
    check_one_line(lambda: read(path, columns=columns), DatasetError)


@settings(max_examples=CASES)
@given(steps=changes)
def test_any_settings_file_is_read_or_an_error(tmp_path_factory, steps):
    path = tmp_path_factory.getbasetemp() / SETTINGS
    path.write_bytes(mutated(_written(SETTINGS), steps))
    check_one_line(lambda: load_settings(str(path)), TableError)


def test_cells_that_look_like_formulas_and_paths_stay_text(tmp_path):
    words = ["=1+1", "../../etc/passwd", "<script>", "\N{GRINNING FACE}"] * 3
    pd.DataFrame({"a": words, "b": range(12)}).to_csv(tmp_path / "t.csv", index=False)
    assert list(read_table([str(tmp_path / "t.csv")]).frame["a"]) == words
