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
    X, y, views = _patients(rng)
    X, _ = corrupt_views(X, y, views, "swap", share=_SWAPPED, random_state=rng)
    X, _ = corrupt_views(X, y, views, "missing", share=_MISSING, random_state=rng)
    title = (
        f"{_PATIENTS} generated patients: {_SWAPPED:.0%} have one table of another patient, "
        f"{_MISSING:.0%} lack one"
    )
    labels = np.array(_CLASSES)[y]
    yield _write_example(folder / "patients", X, views, {"illness": labels}, title, 4, seed)
    digits = load("digit_views")
    rows = np.sort(rng.permutation(len(digits.target))[:_DIGITS])
    X, y = digits.data[rows], digits.target[rows]
    X, _ = corrupt_views(X, y, digits.views, "swap", share=_SWAPPED_DIGITS, random_state=rng)
    title = (
        f"{_DIGITS} digits, described in four ways; {_SWAPPED_DIGITS:.0%} have one description of "
        "another digit"
    )
    yield _write_example(folder / "digits", X, digits.views, {"digit": y}, title, 3, seed)


def _patients(rng: np.random.RandomState) -> tuple[Array, Array, dict[str, slice]]:
    """Draw patients whose illness affects every table, but none of them clearly.

    Returns
    -------
    X : array of shape (n_patients, n_columns)
    y : array of int of shape (n_patients,)
        Codes of classes.
    views : dict of str to slice
        Columns of each table.
    """
    y = rng.randint(len(_CLASSES), size=_PATIENTS)
    shape = (len(_CLASSES), _COLUMNS)
    blocks = [
        rng.normal(size=(_PATIENTS, _COLUMNS)) + _SEPARATION * rng.normal(size=shape)[y]
        for _ in _CLINIC
    ]
    views = {name: slice(k * _COLUMNS, (k + 1) * _COLUMNS) for k, name in enumerate(_CLINIC)}
    return np.hstack(blocks), y, views


def _write_example(
    folder: Path,
    X: Array,
    views: Mapping[str, Any],
    target: Mapping[str, Array],
    title: str,
    folds: int,
    seed: int,
) -> Example:
    """Write a table for each view, without samples that lack it, and one for the target.

    Parameters
    ----------
    folder : Path
    X : array of shape (n_samples, n_columns)
    views : mapping of str to slice
    target : mapping of str to array of shape (n_samples,)
        One target by its name.
    title : str
    folds, seed : int
        Settings of the comparison.
    """
    pandas = need_pandas("lokl demo")
    ids = pandas.Index([f"S{k:03d}" for k in range(len(X))], name="sample")
    files = []
    for view, columns in views.items():
        block = pandas.DataFrame(X[:, columns], index=ids).round(4)
        block.columns = [f"{view}{k}" for k in range(1, block.shape[1] + 1)]
        files.append(_write_csv(folder / f"{view}.csv", block.dropna(how="all")))
    (name,) = target
    truth = _write_csv(folder / "known.csv", pandas.DataFrame(dict(target), index=ids))
    settings = Settings(
        tuple(files),
        on="sample",
        target=f"{truth}:{name}",
        folds=folds,
        repeats=1,
        methods=_METHODS,
        seed=seed,
    )
    return Example(title, settings, folder / "run")


def _write_csv(path: Path, frame: Any) -> str:
    """Write a data frame as CSV, and return the path."""
    replace_file(path, frame.to_csv(lineterminator="\n").encode())
    return str(path)
