"""Examples of what a comparison is for: tables of which some are wrong or missing."""

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
# Shares of the samples that have one view of another class, and that lack one.
_SWAPPED, _LACKING, _SWAPPED_DIGITS = 0.4, 0.15, 0.3


@dataclass(frozen=True)
class Example:
    """Tables on disk, and what is asked about them."""

    title: str
    settings: Settings
    folder: Path

    @property
    def command(self) -> str:
        """What a user would type to see all candidates."""
        own = self.settings
        return f"lokl compare {' '.join(own.files)} --on {own.on} --target {own.target}"


def demo_tables(folder: Path, seed: int = 0) -> Iterator[Example]:
    """Write the tables of all examples below a folder."""
    rng = np.random.RandomState(seed)
    X, y, views = _patients(rng)
    X, _ = corrupt_views(X, y, views, "swap", share=_SWAPPED, random_state=rng)
    X, _ = corrupt_views(X, y, views, "missing", share=_LACKING, random_state=rng)
    title = (
        f"{_PATIENTS} generated patients: {_SWAPPED:.0%} have a table of somebody else, "
        f"{_LACKING:.0%} lack one"
    )
    labels = np.array(_CLASSES)[y]
    yield _written(folder / "patients", X, views, {"illness": labels}, title, 4, seed)
    found = load("digit_views")
    rows = np.sort(rng.permutation(len(found.target))[:_DIGITS])
    X, y = found.data[rows], found.target[rows]
    X, _ = corrupt_views(X, y, found.views, "swap", share=_SWAPPED_DIGITS, random_state=rng)
    title = (
        f"{_DIGITS} digits, described in four ways; {_SWAPPED_DIGITS:.0%} have one description of "
        "another digit"
    )
    yield _written(folder / "digits", X, found.views, {"digit": y}, title, 3, seed)


def _patients(rng: np.random.RandomState) -> tuple[Array, Array, dict[str, slice]]:
    """Draw patients whose illness shows in every table, in none of them clearly."""
    y = rng.randint(len(_CLASSES), size=_PATIENTS)
    shape = (len(_CLASSES), _COLUMNS)
    blocks = [
        rng.normal(size=(_PATIENTS, _COLUMNS)) + _SEPARATION * rng.normal(size=shape)[y]
        for _ in _CLINIC
    ]
    places = {name: slice(k * _COLUMNS, (k + 1) * _COLUMNS) for k, name in enumerate(_CLINIC)}
    return np.hstack(blocks), y, places


def _written(
    folder: Path,
    X: Array,
    views: Mapping[str, Any],
    target: Mapping[str, Array],
    title: str,
    folds: int,
    seed: int,
) -> Example:
    """Write a table for each view and one of the target; who lacks a view is not in its table."""
    pandas = need_pandas("lokl demo")
    ids = pandas.Index([f"S{number:03d}" for number in range(len(X))], name="sample")
    files = []
    for view, place in views.items():
        block = pandas.DataFrame(X[:, place], index=ids).round(4)
        block.columns = [f"{view}{number}" for number in range(1, block.shape[1] + 1)]
        files.append(_file(folder / f"{view}.csv", block.dropna(how="all")))
    (name,) = target
    truth = _file(folder / "known.csv", pandas.DataFrame(dict(target), index=ids))
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


def _file(path: Path, frame: Any) -> str:
    replace_file(path, frame.to_csv(lineterminator="\n").encode())
    return str(path)
