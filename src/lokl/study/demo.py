"""Example tables for a comparison, with wrong and missing parts."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from lokl._arrays import Array
from lokl._files import replace_file
from lokl._frames import need_pandas
from lokl.datasets import corrupt_views, load
from lokl.datasets.generators import column_slices
from lokl.study.settings import Settings

_METHODS = ("trusted vote", "uniform mix", "views", "random forest")
_CLINIC, _CLASSES = ("blood", "scan", "survey"), ("healthy", "mild", "severe")
_PATIENTS, _COLUMNS, _SEPARATION = 240, 4, 1.2
_DIGITS = 150
# Fractions of the samples with one view of another class, and with a missing view.
_SWAPPED, _MISSING, _SWAPPED_DIGITS = 0.4, 0.15, 0.3


@dataclass(frozen=True)
class Example:
    """Tables on disk, and the settings of a comparison of them.

    Attributes
    ----------
    title : str
        Description of the samples.
    settings : Settings
    folder : Path
        For the results of the comparison.
    """

    title: str
    settings: Settings
    folder: Path

    @property
    def command(self) -> str:
        """The command that compares all candidates."""
        settings = self.settings
        files = " ".join(settings.files)
        return f"lokl compare {files} --on {settings.on} --target {settings.target}"


def demo_tables(folder: Path, seed: int = 0) -> Iterator[Example]:
    """Write the tables of each example below a folder, and yield the example.

    Parameters
    ----------
    folder : Path
    seed : int, default=0
        Seed of the samples, their wrong and missing parts, and the comparison.

    Yields
    ------
    example : Example
    """
    rng = np.random.RandomState(seed)
    title = (
        f"{_PATIENTS} generated patients: {_SWAPPED:.0%} have one table of another patient, "
        f"{_MISSING:.0%} lack one"
    )
    settings: dict[str, Any] = {"on": "sample", "repeats": 1, "methods": _METHODS, "seed": seed}
    tables = _write_tables(folder / "patients", "illness", *_patients(rng))
    yield Example(title, Settings(folds=4, **tables, **settings), folder / "patients" / "run")
    title = (
        f"{_DIGITS} digits, described in four ways; {_SWAPPED_DIGITS:.0%} have one description of "
        "another digit"
    )
    tables = _write_tables(folder / "digits", "digit", *_digits(rng))
    yield Example(title, Settings(folds=3, **tables, **settings), folder / "digits" / "run")


# Samples of shape (n_samples, n_columns), targets of shape (n_samples,), and columns of each view.
_Samples = tuple[Array, Array, Mapping[str, Any]]


def _patients(rng: np.random.RandomState) -> _Samples:
    """Draw patients whose illness affects every table, but none of them clearly."""
    y = rng.randint(len(_CLASSES), size=_PATIENTS)
    shape = (len(_CLASSES), _COLUMNS)
    blocks = [
        rng.normal(size=(_PATIENTS, _COLUMNS)) + _SEPARATION * rng.normal(size=shape)[y]
        for _ in _CLINIC
    ]
    views = column_slices(_CLINIC, [_COLUMNS] * len(_CLINIC))
    X, _ = corrupt_views(np.hstack(blocks), y, views, "swap", share=_SWAPPED, random_state=rng)
    X, _ = corrupt_views(X, y, views, "missing", share=_MISSING, random_state=rng)
    return X, np.array(_CLASSES)[y], views


def _digits(rng: np.random.RandomState) -> _Samples:
    """Draw some of the bundled digits."""
    digits = load("digit_views")
    rows = np.sort(rng.permutation(len(digits.target))[:_DIGITS])
    X, y = digits.data[rows], digits.target[rows]
    X, _ = corrupt_views(X, y, digits.views, "swap", share=_SWAPPED_DIGITS, random_state=rng)
    return X, y, digits.views


def _write_tables(
    folder: Path, name: str, X: Array, y: Array, views: Mapping[str, Any]
) -> dict[str, Any]:
    """Write a table for each view, without samples that lack it, and one for the target.

    Parameters
    ----------
    folder : Path
    name : str
        Name of the target.
    X, y, views
        See ``_Samples``.

    Returns
    -------
    settings : dict
        Settings ``files`` and ``target`` of a comparison.
    """
    pandas = need_pandas("lokl demo")
    ids = pandas.Index([f"S{k:03d}" for k in range(len(X))], name="sample")
    tables = {"known": pandas.DataFrame({name: y}, index=ids)}
    for view, columns in views.items():
        table = pandas.DataFrame(X[:, columns], index=ids).round(4).dropna(how="all")
        tables[view] = table.rename(columns=lambda k, view=view: f"{view}{k + 1}")
    folder.mkdir(parents=True, exist_ok=True)
    for stem, table in tables.items():
        replace_file(folder / f"{stem}.csv", table.to_csv(lineterminator="\n").encode())
    truth, *files = (str(folder / f"{stem}.csv") for stem in tables)
    return {"files": tuple(files), "target": f"{truth}:{name}"}
