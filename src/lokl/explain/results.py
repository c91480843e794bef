"""Tables of results with intervals, and the folds and scores behind them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import exp, inf, isfinite, sqrt
from typing import Any, NamedTuple

import numpy as np
from scipy import stats
from sklearn.base import is_classifier
from sklearn.metrics import check_scoring, get_scorer
from sklearn.utils import check_consistent_length

from lokl._arrays import Array
from lokl._frames import need_pandas
from lokl._text import aligned, html_table, shortened
from lokl.search.cross_validation import make_folds
from lokl.solvers.machines import Fold

# Characters of a line, of the shortest column of names, and level of intervals.
_WIDTH, _SHORTEST_NAME, _LEVEL = 80, 12, 0.95
# Two-sided quantile of the normal distribution at this level.
QUANTILE = 1.959964


class Interval(NamedTuple):
    """A mean with the limits of its 95 % interval, NaN without an interval.

    Attributes
    ----------
    mean : float
        Estimate.
    low, high : float
        Limits.

    See Also
    --------
    lokl.report.LeaderboardEntry : Has intervals.

    Examples
    --------
    >>> from lokl.report import Interval
    >>> Interval(0.93, 0.90, 0.96)
    Interval(mean=0.93, low=0.9, high=0.96)
    """

    mean: float
    low: float = np.nan
    high: float = np.nan

    @property
    def reach(self) -> float:
        """Half the width of the interval."""
        return (self.high - self.low) / 2

    def __neg__(self) -> "Interval":
        return Interval(-self.mean, -self.high, -self.low)


@dataclass(frozen=True, eq=False)
class SummaryTable:
    """A table of numbers: ``table["score"]`` is a column, ``str(table)`` is text.

    Attributes
    ----------
    title : str
    kind : str
        Meaning of a row: a view, a column, a kernel.
    rows : tuple of str
        Name of each row.
    columns : dict of str to array of shape (n_rows,)
        Numbers by name. ``x_low`` and ``x_high`` are the limits of the 95 % interval of ``x``.

    See Also
    --------
    lokl.explain.view_importance : Returns one.
    lokl.explain.column_importance : Returns one.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import scale
    >>> from lokl import UniformMKLClassifier
    >>> from lokl.explain import view_importance
    >>> from lokl.kernels import RBF, per_view
    >>> X, y = load_wine(return_X_y=True)
    >>> X = scale(X)
    >>> kernels = per_view(RBF(), {"acids": slice(0, 5), "colours": slice(5, 13)})
    >>> model = UniformMKLClassifier(kernels, C=10).fit(X[::2], y[::2])
    >>> table = view_importance(model, X[1::2], y[1::2], random_state=0)
    >>> round(table.row("colours")["loss"], 2), round(table.row("acids")["loss"], 2)
    (0.52, 0.11)
    """

    title: str
    kind: str
    rows: tuple[str, ...]
    columns: Mapping[str, Array]

    def __getitem__(self, column: str) -> Array:
        if column not in self.columns:
            raise KeyError(f"no column {column!r}; there are {', '.join(self.columns)}")
        return self.columns[column]

    def row(self, name: str) -> dict[str, float]:
        """Return the numbers of one row by column."""
        if name not in self.rows:
            raise KeyError(f"no {self.kind} {name!r}; there are {', '.join(self.rows)}")
        k = self.rows.index(name)
        return {column: float(values[k]) for column, values in self.columns.items()}

    def interval(self, name: str, column: str) -> Interval:
        """Return a number of one row with the limits of its interval."""
        row = self.row(name)
        return Interval(row[column], row[f"{column}_low"], row[f"{column}_high"])

    def to_frame(self) -> Any:
        """Return a data frame (pandas) with one row for each name."""
        pandas = need_pandas("to_frame")
        return pandas.DataFrame(dict(self.columns), pandas.Index(self.rows, name=self.kind))

    def __str__(self) -> str:
        heads = [name.replace("_", " ") for name in self._heads()]
        cells = [heads, *(self._texts(k) for k in range(len(self.rows)))]
        room = max(_WIDTH - max(map(len, aligned([["", *row] for row in cells]))), _SHORTEST_NAME)
        names = [shortened(name, room) for name in (self.kind, *self.rows)]
        lines = aligned([[name, *row] for name, row in zip(names, cells, strict=True)])
        return "\n".join([self.title, *lines])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """Return the table for notebooks."""
        heads = [self.kind, *(name.replace("_", " ") for name in self._heads())]
        rows = [[name, *self._texts(k)] for k, name in enumerate(self.rows)]
        return html_table(self.title, heads, rows)

    def _heads(self) -> list[str]:
        """Return the columns that are not limits of intervals."""
        limits = {f"{name}{end}" for name in self.columns for end in ("_low", "_high")}
        return [name for name in self.columns if name not in limits]

    def _texts(self, k: int) -> list[str]:
        """Return the cells of a row, with intervals in brackets."""
        texts = []
        for name in self._heads():
            text = short_number(self.columns[name][k])
            if f"{name}_low" in self.columns:
                low, high = (self.columns[f"{name}_{end}"][k] for end in ("low", "high"))
                text += f" [{short_number(low)}, {short_number(high)}]"
            texts.append(text)
        return texts


def short_number(value: float) -> str:
    """Return a number in few characters."""
    return f"{value:.3f}" if abs(value) < 1000 else f"{value:.3g}"


def interval_columns(name: str, intervals: Sequence[Interval]) -> dict[str, Array]:
    """Return the columns of a table for intervals, one for each row."""
    table = np.array(intervals, dtype=float).reshape(len(intervals), 3)
    return {f"{name}{end}": table[:, k] for k, end in enumerate(("", "_low", "_high"))}


def shared_folds(model: Any, y: Any, cv: Any, groups: Any) -> list[Fold]:
    """Return two or more splits that all compared models share."""
    check_consistent_length(y, groups)
    folds = make_folds(cv, np.asarray(y), classification=is_classifier(model), groups=groups)
    if len(folds) < 2:
        raise ValueError(
            f"cv={cv!r} gives {len(folds)} split; an interval over folds needs two or more"
        )
    return folds


def one_scorer(model: Any, scoring: Any) -> Any:
    """Return the scorer of a model; several scores are rejected."""
    if scoring is not None and not isinstance(scoring, str) and not callable(scoring):
        raise ValueError(f"scoring must be the name of one score or a function, got {scoring!r}")
    return check_scoring(model, scoring)


class ScoreLimits(NamedTuple):
    """Least and largest value of a score; infinite without a limit."""

    low: float = -inf
    high: float = inf


_FREE = ScoreLimits()

# Scores of scikit-learn between 0 and 1, and other scores with limits, by their functions.
_SHARES = (
    *("accuracy", "balanced_accuracy", "top_k_accuracy", "roc_auc", "average_precision"),
    *("f1", "fbeta", "precision", "recall", "jaccard"),
)
_LIMITS = {f"{name}_score": ScoreLimits(0.0, 1.0) for name in _SHARES}
_LIMITS |= dict.fromkeys(("matthews_corrcoef", "cohen_kappa_score"), ScoreLimits(-1.0, 1.0))
_LIMITS |= dict.fromkeys(("r2_score", "explained_variance_score"), ScoreLimits(high=1.0))


def score_limits(model: Any, scoring: Any) -> ScoreLimits:
    """Return the limits of a score.

    Parameters
    ----------
    model : estimator
    scoring : str, callable or None
        None is the model's own score.
    """
    if scoring is None:
        is_share = is_classifier(model) or hasattr(model, "predict_survival_function")
        return ScoreLimits(0.0 if is_share else -inf, 1.0)
    scorer = get_scorer(scoring) if isinstance(scoring, str) else scoring
    function = getattr(scorer, "_score_func", None)
    if function is None or not function.__module__.startswith("sklearn."):
        return _FREE
    # Losses, which are negated.
    return ScoreLimits(high=0.0) if scorer._sign < 0 else _LIMITS.get(function.__name__, _FREE)


def interval_within(
    value: float, error: float, limits: ScoreLimits, n_samples: int, quantile: float = QUANTILE
) -> Interval:
    """Return a score with a 95 % interval inside its limits.

    The interval is Wilson's for scores between two limits, symmetric on a logarithmic scale for
    scores with one limit, and symmetric for others.

    Parameters
    ----------
    value : float
    error : float
        Standard error of `value`.
    limits : ScoreLimits
    n_samples : int
        Number of samples, for a score between two limits without error.
    quantile : float
    """
    low, high = limits
    if not (isfinite(value) and isfinite(error)):
        return Interval(value)
    if isfinite(low) and isfinite(high):
        span = high - low
        share = min(max((value - low) / span, 0.0), 1.0)
        variance = (error / span) ** 2
        # The number of independent samples of which a share has this error.
        size = share * (1 - share) / variance if variance > 0 else float(n_samples)
        ends = _wilson(share, size, quantile) if size > 0 else (share, share)
        return Interval(value, *(low + span * end for end in ends))
    if isfinite(low) and value > low:
        factor = exp(quantile * error / (value - low))
        return Interval(value, low + (value - low) / factor, low + (value - low) * factor)
    if isfinite(high) and value < high:
        factor = exp(quantile * error / (high - value))
        return Interval(value, high - (high - value) * factor, high - (high - value) / factor)
    return Interval(value, value - quantile * error, value + quantile * error)


def _wilson(share: float, size: float, quantile: float) -> tuple[float, float]:
    """Return the limits of Wilson's interval of a share of `size` samples."""
    squared = quantile**2
    centre = share + squared / (2 * size)
    reach = quantile * sqrt(share * (1 - share) / size + squared / (4 * size**2))
    low, high = ((centre + sign * reach) / (1 + squared / size) for sign in (-1, 1))
    # Rounding must not put the share outside.
    return max(min(low, share), 0.0), min(max(high, share), 1.0)


def corrected_interval(
    scores: Array, folds: Sequence[Fold], limits: ScoreLimits = _FREE
) -> Interval:
    """Return the mean of scores over splits with its 95 % interval.

    Models of different splits share most of their training samples, so their scores vary less than
    scores on independent samples would. The variance of the mean is therefore taken as
    ``(1 / n_splits + n_test / n_train) * variance`` (Nadeau and Bengio, 2003).

    Parameters
    ----------
    scores : array of shape (n_splits,)
        Scores, or differences of the scores of two models on the same splits.
    folds : sequence of (training rows, test rows)
    limits : ScoreLimits
        Limits of the score, which the interval does not leave.
    """
    scores = np.asarray(scores, dtype=float)
    quantile = float(stats.t.ppf(0.5 + _LEVEL / 2, len(scores) - 1))
    n_samples = sum(len(test) for _, test in folds)
    error = corrected_error(scores, folds)
    return interval_within(float(scores.mean()), error, limits, n_samples, quantile)


def corrected_error(scores: Array, folds: Sequence[Fold]) -> float:
    """Return the standard error of a mean score over splits; see :func:`corrected_interval`."""
    scores = np.asarray(scores, dtype=float)
    ratio = float(np.mean([len(test) / len(train) for train, test in folds]))
    return float(np.sqrt((1.0 / len(scores) + ratio) * scores.var(ddof=1)))
