"""Tables that are text: cells between delimiters, and LIBSVM's lines."""

import bz2
import csv
import gzip
import io
import lzma
import re
import warnings
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from lokl._tables import need_pandas
from lokl.tables.errors import TableError

_OPEN: dict[str, Any] = {".bz2": bz2.open, ".gz": gzip.open, ".xz": lzma.open}
_DELIMITERS = {",": "','", ";": "';'", "\t": "tabs", "|": "'|'"}
# Cells that are missing values whatever the user says.
_MISSING = ("", "NA", "NaN", "nan")
_LIBSVM_LINE = re.compile(r"\s*[-+\w.,]+(\s+\d+:\S+)*\s*(#.*)?")


def read_delimited(
    path: Path, given: str, delimiter: str, text_columns: Sequence[str], na: Sequence[str]
) -> Any:
    """Return the data frame of a text file with a header."""
    pandas = need_pandas("reading tables")
    text = _text(path, given)
    header = next(csv.reader(io.StringIO(text), delimiter=delimiter), [])
    _check_header(given, header, delimiter)
    with warnings.catch_warnings():
        # Longer rows than the header are otherwise cut.
        warnings.simplefilter("error", pandas.errors.ParserWarning)
        try:
            return pandas.read_csv(
                io.StringIO(text),
                sep=delimiter,
                index_col=False,
                dtype={name: str for name in text_columns if name in header},
                keep_default_na=False,
                na_values=[*_MISSING, *na],
                low_memory=False,
            )
        except (pandas.errors.ParserError, pandas.errors.ParserWarning) as reason:
            raise TableError(_lengths(given, str(reason), len(header))) from reason


def _text(path: Path, given: str) -> str:
    try:
        with _OPEN.get(path.suffix.lower(), open)(path, "rb") as stream:
            content: bytes = stream.read()
    except (EOFError, lzma.LZMAError, zlib.error, gzip.BadGzipFile) as reason:
        raise TableError(f"{given} is damaged: it cannot be unpacked ({reason})") from reason
    if b"\0" in content[:4096]:
        raise TableError(f"{given} is not text; give CSV, TSV, Parquet, LIBSVM text or .npz")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as reason:
        row = content[: reason.start].count(b"\n") + 1
        raise TableError(
            f"{given}, row {row}: not in UTF-8 (byte {content[reason.start]:#x}); save the file in "
            "UTF-8, for example with: iconv -f latin1 -t utf8"
        ) from reason
    if not text.strip():
        raise TableError(f"{given} is empty")
    return text


def _check_header(given: str, header: Sequence[str], delimiter: str) -> None:
    if len(header) == 1:
        for other, shown in _DELIMITERS.items():
            if other != delimiter and other in header[0]:
                raise TableError(
                    f"{given}: its cells seem to be divided by {shown}, not by "
                    f"{_DELIMITERS.get(delimiter, repr(delimiter))}; see --delimiter"
                )
    seen: set[str] = set()
    for number, name in enumerate(header, 1):
        if not name.strip():
            raise TableError(f"{given}, row 1: column {number} has no name; name it in the header")
        if name in seen:
            raise TableError(f"{given}: column {name} is there twice; rename one of them")
        seen.add(name)


def _lengths(given: str, told: str, width: int) -> str:
    found = re.search(r"Expected (\d+) fields in line (\d+), saw (\d+)", told)
    if found:
        return f"{given}, row {found[2]}: {found[3]} cells, but the header has {found[1]}"
    if "Length of header" in told:
        return (
            f"{given}: rows have more cells than the header, {width}; name all columns in it, also "
            "that of the ids"
        )
    return f"{given} cannot be read as a table: {' '.join(told.split())}"


def read_libsvm(path: Path, given: str, most_values: int) -> Any:
    """Return the data frame of lines ``label column:value ...``; the labels are ``label``."""
    from sklearn.datasets import load_svmlight_file

    pandas = need_pandas("reading tables")
    text = _text(path, given)
    for number, line in enumerate(text.splitlines(), 1):
        if not _LIBSVM_LINE.fullmatch(line) and line.strip():
            hint = "" if number > 1 else "; name a table .csv or .tsv, or give --delimiter"
            raise TableError(f"{given}, row {number}: no line of LIBSVM text{hint}")
    try:
        X, y = load_svmlight_file(io.BytesIO(text.encode()))
    except ValueError as reason:
        raise TableError(f"{given} is no LIBSVM text: {' '.join(str(reason).split())}") from reason
    if X.shape[0] * X.shape[1] > most_values:
        raise TableError(
            f"{given} has {X.shape[0]} rows of {X.shape[1]} columns, too many for a table; use "
            "the Python interface, which takes sparse matrices"
        )
    frame = pandas.DataFrame(X.toarray(), columns=[f"f{j}" for j in range(1, X.shape[1] + 1)])
    whole = np.all(y == np.floor(y))
    return frame.assign(label=y.astype(np.int64) if whole else y)
