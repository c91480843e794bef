"""Example tables: a comparison on clean samples, and new samples with exchanged tables."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from lokl._arrays import Array
from lokl._files import replace_file
from lokl._frames import need_pandas
from lokl.datasets import corrupt_views, load
from lokl.datasets.generators import column_slices
from lokl.explain import Explanation, explain
from lokl.study.settings import Settings
from lokl.tables.preparation import schema_of
from lokl.tables.table import read_new

_METHODS = ("trusted vote", "uniform mix", "views", "random forest")
_CLINIC, _CLASSES = ("blood", "scan", "survey"), ("healthy", "mild", "severe")
_COLUMNS, _SEPARATION = 5, 1.4
# Samples to learn from, and new ones.
_PATIENTS, _DIGITS, _NEW = 240, 300, 240
# Fractions of the samples without a view, and of the new samples with an exchanged one.
_MISSING, _EXCHANGED = 0.15, 0.4
# The number of least trusted tables is rounded up to a multiple of this.
_ROUND = 10


@dataclass(frozen=True)
class Exchange:
    """Exchanged tables among the least trusted ones.

    Attributes
    ----------
    exchanged : int
        Number of exchanged tables.
    least_trusted : int
        Number of least trusted tables that were looked at.
    found : int
        Exchanged tables among them.
    sample : str
        Id of the sample with the least trusted exchanged table.
    """

    exchanged: int
    least_trusted: int
    found: int
    sample: str

    def __str__(self) -> str:
        return (
            f"{self.exchanged} tables were exchanged; {self.found} are among the "
            f"{self.least_trusted} least trusted"
        )


@dataclass(frozen=True, eq=False)
class Example:
    """Tables on disk, the settings of a comparison of them, and new samples.

    Attributes
    ----------
    title, new_title : str
        Description of the samples, and of the new ones.
    settings : Settings
    folder : Path
        For the results of the comparison.
    new_files : tuple of str
        Tables of the new samples.
    exchanged : dict of str to str
        Exchanged table of each new sample that has one: view by id.
    """

    title: str
    new_title: str
    settings: Settings
    folder: Path
    new_files: tuple[str, ...]
    exchanged: Mapping[str, str]

    @property
    def command(self) -> str:
        """The command that compares all candidates."""
        settings = self.settings
        files = " ".join(settings.files)
        return f"lokl compare {files} --on {settings.on} --target {settings.target}"

    @property
    def new_command(self) -> str:
        """The command that predicts the new samples."""
        return f"lokl predict {self.folder / 'model.lokl'} {' '.join(self.new_files)}"

    def explained(self, model: Any) -> Explanation:
        """Return the explanation of the new samples by a fitted model of these tables."""
        table = read_new(self.new_files, schema_of(model))
        return explain(model, table.frame, ids=table.ids)

    def exchange(self, explanation: Explanation) -> Exchange:
        """Return how many exchanged tables are among the least trusted ones.

        Parameters
        ----------
        explanation : Explanation
            Of the new samples, by a trusted vote.
        """
        if explanation.trust is None:
            raise ValueError("only a trusted vote has trust in each table")
        ids = np.array(explanation.ids)[:, None]
        owners = [[self.exchanged.get(name) for name in row] for row in ids.tolist()]
        is_exchanged = np.array(owners, dtype=object) == np.array(explanation.views)
        trust = np.where(explanation.presence, explanation.trust, np.inf).ravel()
        order = np.argsort(trust, kind="stable")
        count = int(is_exchanged.sum())
        looked_at = -(-count // _ROUND) * _ROUND
        ranked = is_exchanged.ravel()[order]
        sample = explanation.ids[int(order[ranked][0]) // len(explanation.views)]
        return Exchange(count, looked_at, int(ranked[:looked_at].sum()), sample)


def demo_tables(folder: Path, seed: int = 0) -> Iterator[Example]:
    """Write the tables of each example below a folder, and yield the example.

    Parameters
    ----------
    folder : Path
    seed : int, default=0
        Seed of the samples, their missing and exchanged parts, and the comparison.

    Yields
    ------
    example : Example
    """
    rng = np.random.RandomState(seed)
    n_wrong = round(_EXCHANGED * _NEW)
    missing = f"{_MISSING:.0%} lack one table"
    yield _example(
        folder / "patients",
        "illness",
        (
            f"{_PATIENTS} generated patients, described by three tables; {missing}",
            f"{_NEW} new patients: {n_wrong} have one table of a patient with another illness",
        ),
        _patients(rng),
        rng,
        seed,
    )
    yield _example(
        folder / "digits",
        "digit",
        (
            f"{_DIGITS} handwritten digits, described by four tables; {missing}",
            f"{_NEW} new digits: {n_wrong} have one table of another digit",
        ),
        _digits(rng),
        rng,
        seed,
    )


# Samples of shape (n_samples, n_columns), targets of shape (n_samples,), and columns of each view.
_Samples = tuple[Array, Array, Mapping[str, Any]]


def _patients(rng: np.random.RandomState) -> _Samples:
    """Draw patients whose illness affects every table, but none of them clearly."""
    n = _PATIENTS + _NEW
    y = rng.randint(len(_CLASSES), size=n)
    shape = (len(_CLASSES), _COLUMNS)
    blocks = [
        rng.normal(size=(n, _COLUMNS)) + _SEPARATION * rng.normal(size=shape)[y] for _ in _CLINIC
    ]
    views = column_slices(_CLINIC, [_COLUMNS] * len(_CLINIC))
    return np.hstack(blocks), np.array(_CLASSES)[y], views


def _digits(rng: np.random.RandomState) -> _Samples:
    """Draw some of the bundled digits."""
    digits = load("digit_views")
    rows = rng.permutation(len(digits.target))[: _DIGITS + _NEW]
    return digits.data[rows], digits.target[rows], digits.views


def _example(
    folder: Path,
    target: str,
    titles: tuple[str, str],
    samples: _Samples,
    rng: np.random.RandomState,
    seed: int,
) -> Example:
    """Write the tables of an example; some of the last samples, the new ones, are exchanged.

    Parameters
    ----------
    folder : Path
    target : str
        Name of the target.
    titles : (str, str)
        Description of the samples, and of the new ones.
    samples
        See ``_Samples``.
    rng : RandomState
    seed : int
        Seed of the comparison.
    """
    X, y, views = samples
    X, _ = corrupt_views(X, y, views, "missing", share=_MISSING, random_state=rng)
    known, new = slice(None, len(X) - _NEW), slice(len(X) - _NEW, None)
    exchanged = _exchange_views(X[new], y[new], views, rng)
    ids = [f"S{k:03d}" for k in range(len(X))]
    files = _write_tables(folder, ids[known], X[known], views)
    pandas = need_pandas("lokl demo")
    truth = pandas.DataFrame({target: y[known]}, index=pandas.Index(ids[known], name="sample"))
    replace_file(folder / "known.csv", truth.to_csv(lineterminator="\n").encode())
    new_X, mask = exchanged
    new_files = _write_tables(folder / "new", ids[new], new_X, views)
    names = list(views)
    owners = {ids[new][row]: names[column] for row, column in np.argwhere(mask).tolist()}
    settings = Settings(
        tuple(files),
        on="sample",
        target=f"{folder / 'known.csv'}:{target}",
        folds=4,
        repeats=1,
        methods=_METHODS,
        seed=seed,
    )
    return Example(*titles, settings, folder / "run", tuple(new_files), owners)


def _exchange_views(
    X: Array, y: Array, views: Mapping[str, Any], rng: np.random.RandomState
) -> tuple[Array, Array]:
    """Replace one view of some samples by the view of a sample of another class.

    Parameters
    ----------
    X, y, views
        See ``_Samples``; NaN for missing views.
    rng : RandomState

    Returns
    -------
    X : array of shape (n_samples, n_columns)
    exchanged : bool array of shape (n_samples, n_views)
    """
    complete = np.flatnonzero(~np.isnan(X).any(axis=1))
    share = round(_EXCHANGED * len(X)) / len(complete)
    X, exchanged = X.copy(), np.zeros((len(X), len(views)), dtype=bool)
    X[complete], exchanged[complete] = corrupt_views(
        X[complete], y[complete], views, "swap", share=share, random_state=rng
    )
    return X, exchanged


def _write_tables(
    folder: Path, ids: Sequence[str], X: Array, views: Mapping[str, Any]
) -> list[str]:
    """Write a table for each view, without samples that lack it, and return the paths."""
    pandas = need_pandas("lokl demo")
    folder.mkdir(parents=True, exist_ok=True)
    files = []
    for view, columns in views.items():
        index = pandas.Index(ids, name="sample")
        table = pandas.DataFrame(X[:, columns], index=index).round(4).dropna(how="all")
        table = table.rename(columns=lambda k, view=view: f"{view}{k + 1}")
        files.append(str(folder / f"{view}.csv"))
        replace_file(Path(files[-1]), table.to_csv(lineterminator="\n").encode())
    return files
