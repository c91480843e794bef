"""Contributions of single columns to the predictions of a model, and their importance."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.base import OneToOneFeatureMixin
from sklearn.utils import check_random_state

from lokl._arrays import Array, Samples, as_dense, as_samples, slices
from lokl._frames import as_pandas, need_pandas
from lokl.base.model import GatedMachine, fitted_inside
from lokl.explain.results import Interval, SummaryTable, interval_columns
from lokl.explain.shapley import N_ORDERS, Sampling, column_values
from lokl.explain.views import KernelView, Views, named_views, views_of
from lokl.gram.plan import with_rank
from lokl.kernels.columns import column_names, resolve_columns, take_columns
from lokl.kernels.samples import read_samples
from lokl.methods.expertaverage import AverageVote
from lokl.methods.ldmkl import Vote
from lokl.methods.trusted_vote.evidence import ExpertOutputs
from lokl.methods.trusted_vote.model import TrustedVote
from lokl.search.columns import ColumnEncoder, ColumnScaler

# Numbers in the values of one block of samples.
_BLOCK = 2**24
# Nodes on the path of an expert from no columns to all, and the relative step of its derivatives.
_NODES, _NODE_WEIGHTS = np.polynomial.legendre.leggauss(8)
_STEP = 1e-4
# Changes of a decision below which its slope is a derivative.
_FLAT = 1e-6
# Level of intervals of importances.
_LEVEL = 0.95


@dataclass(frozen=True, eq=False)
class ColumnContributions:
    """Contributions of single columns, which add up to the contributions of their views.

    A column that two views read has a contribution in each of them.

    Attributes
    ----------
    views : list of str
    columns : list of str
        Name of the column of each contribution.
    view : int array of shape (n_columns,)
        Position of its view in `views`.
    values : array of shape (n_samples, n_columns)
        Of the decision, or of the value; with more than two classes or several targets
        (n_samples, n_tasks, n_columns). In an :class:`Explanation`, of the predicted class against
        the runner-up, in the unit of the explanation.
    approximate : tuple of str
        Kernels whose values are means over random orders of the columns.

    See Also
    --------
    lokl.explain.column_contributions : Computes them.
    lokl.explain.column_importance : Over all samples.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import scale
    >>> from lokl import UniformMKLClassifier
    >>> from lokl.explain import column_contributions
    >>> from lokl.kernels import RBF, per_view
    >>> X, y = load_wine(return_X_y=True)
    >>> X, y = scale(X[y < 2]), y[y < 2]
    >>> kernels = per_view(RBF(), {"acids": slice(0, 5), "colours": slice(5, 13)})
    >>> model = UniformMKLClassifier(kernels, C=10).fit(X, y)
    >>> found = column_contributions(model, X)
    >>> found.values.shape
    (130, 13)
    >>> abs(found.by_view() - model.contributions(X)).max().round(6).item()
    0.0
    """

    views: list[str]
    columns: list[str]
    view: Array
    values: Array
    approximate: tuple[str, ...] = ()

    def by_view(self) -> Array:
        """Return the sums over the columns of each view: its contributions."""
        return self.values @ (self.view[:, np.newaxis] == np.arange(len(self.views)))

    @cached_property
    def labels(self) -> list[str]:
        """Name of each contribution, with its view if there are several."""
        if len(self.views) < 2:
            return self.columns
        return [f"{self.views[v]} {c}" for v, c in zip(self.view, self.columns, strict=True)]

    def merged(self) -> "ColumnContributions":
        """Return the sums over views of the same columns, such as several kernels on one table."""
        columns: dict[int, list[str]] = {}
        for v, name in zip(self.view.tolist(), self.columns, strict=True):
            columns.setdefault(v, []).append(name)
        tables: dict[tuple[str, ...], list[int]] = {}
        for v, names in columns.items():
            tables.setdefault(tuple(names), []).append(v)
        if len(tables) == len(columns):
            return self
        return ColumnContributions(
            [", ".join(self.views[v] for v in own) for own in tables.values()],
            [name for names in tables for name in names],
            np.repeat(np.arange(len(tables)), [len(names) for names in tables]),
            np.concatenate(
                [sum(self.values[..., self.view == v] for v in own) for own in tables.values()],
                axis=-1,
            ),
            self.approximate,
        )

    def largest(self, k: int, count: int) -> list[tuple[str, str, float]]:
        """Return the largest contributions to one prediction: view, column, contribution.

        Parameters
        ----------
        k : int
            Position of the sample.
        count : int
            Contributions at most; zeros are left out.
        """
        merged = self.merged()
        values = merged.values[k]
        order = np.argsort(-np.abs(values), kind="stable")[:count]
        view = [merged.views[v] if len(merged.views) > 1 else "" for v in merged.view]
        return [(view[c], merged.columns[c], float(values[c])) for c in order if values[c]]

    def to_frame(self, ids: Any = None) -> Any:
        """Return a data frame (pandas) with one column for each contribution, by view and name.

        Parameters
        ----------
        ids : sequence, optional
            Names of the samples.
        """
        pandas = need_pandas("to_frame")
        if self.values.ndim != 2:
            raise ValueError(
                "to_frame needs one contribution for each sample and column; use values"
            )
        names = [self.views[v] for v in self.view], self.columns
        return pandas.DataFrame(
            self.values, ids, pandas.MultiIndex.from_arrays(names, names=["view", "column"])
        )


def column_contributions(
    model: Any,
    X: Any,
    *,
    views: Views | None = None,
    n_orders: int = N_ORDERS,
    random_state: Any = None,
) -> ColumnContributions:
    """Divide the contribution of each view among its columns, as Shapley values.

    The value of a column is its mean contribution over all orders in which the columns of the view
    can be added. Without any of its columns a view is missing and contributes nothing, so that the
    values of its columns add up to its contribution.

    - Exact for kernels that are products over columns (RBF, AnisotropicRBF, Laplacian, and their
      products), linear kernels, polynomials up to degree 3, AdditiveLaplacian, and for sums, gates
      and normalisations of them. An absent column is integrated out: its factor or term is the mean
      over 16 quantiles of the column among the support vectors; linear and polynomial kernels have
      its mean instead. Gates and the factors of normalised kernels stay those of the complete
      sample.
    - Other kernels: means over `n_orders` random orders, in which an absent column has its value
      from a random support vector.
    - LD-MKL and the trusted vote are not sums of kernel values. Shapley values of the decision of
      each expert are multiplied by the mean slope of its contribution, through the calibrated
      log-odds, on the line from no columns to all of them.
    - What remains in a view, such as an intercept, is divided equally among its columns.

    Parameters
    ----------
    model : fitted estimator
        An estimator of lokl, alone or inside pipelines, searches and calibrated classifiers.
    X : {array-like, sparse matrix, data frame} of shape (n_samples, n_features)
    views : mapping of str to positions of columns, optional
        As in :func:`explain`.
    n_orders : int, default=10
        Random orders for each sample, for kernels that need them.
    random_state : int, RandomState or None
        Seed of the random orders.

    Returns
    -------
    contributions : ColumnContributions
        Of the columns of `X`. Scalers, encoders, selections and imputers before the model are
        traced back: the contributions of all columns that encode one column are added up. If a step
        mixes columns, as a principal component analysis does, they are of the columns after it.

    See Also
    --------
    lokl.explain.column_importance : Over all samples.
    lokl.explain.ColumnDisplay : Figure of one sample.
    lokl.explain.feature_weights : Weights of linear kernels.

    Notes
    -----
    The Shapley value of a column under a product of factors ``w_c``, or ``a_c`` if it is absent, is
    ``(w_c - a_c) int_0^1 prod_{e != c} ((1 - t) a_e + t w_e) dt``, a polynomial that Gauss-Legendre
    nodes integrate exactly. The cost is that of some ten kernel values for each pair of samples.
    Polynomial-time values of product kernels are known from [1]_.

    References
    ----------
    .. [1] M. Mohammadi, S. L. Chau, K. Muandet. Computing Exact Shapley Values in Polynomial Time
       for Product-Kernel Methods. 2025.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import scale
    >>> from lokl import UniformMKLClassifier
    >>> from lokl.explain import column_contributions
    >>> from lokl.kernels import RBF, per_view
    >>> X, y = load_wine(return_X_y=True)
    >>> X = scale(X)
    >>> kernels = per_view(RBF(), {"acids": slice(0, 5), "colours": slice(5, 13)})
    >>> model = UniformMKLClassifier(kernels, C=10).fit(X, y == 0)
    >>> contributions = column_contributions(model, X)
    >>> contributions.values.shape
    (178, 13)
    """
    if n_orders < 1:
        raise ValueError(f"n_orders must be 1 or more, got {n_orders!r}")
    layout = ColumnLayout.of(model, as_pandas(X), views)
    sampling = Sampling(n_orders, check_random_state(random_state), set())
    return layout.contributions(None, sampling)


@dataclass(frozen=True, eq=False)
class ColumnLayout:
    """The estimator inside a model, samples as it receives them, and its columns by view.

    Attributes
    ----------
    estimator : fitted estimator of lokl
    Z : samples
    views : list of KernelView
    columns : list of str
        Names of the given columns that its columns come from.
    source : int array of shape (n_features,)
        Position in `columns` of each column that the estimator receives.
    """

    estimator: Any
    Z: Any
    views: list[KernelView]
    columns: list[str]
    source: Array

    @classmethod
    def of(cls, model: Any, X: Any, views: Views | None) -> "ColumnLayout":
        """Trace the columns that a model receives back to those of `X`."""
        views = named_views(model, views)
        given = getattr(model, "feature_names_in_", None)
        names = column_names(X) if given is None else [*map(str, given)]
        names = [f"x{c}" for c in range(X.shape[1])] if names is None else names
        source = np.arange(len(names))
        while True:
            for step in _steps(model):
                traced = _trace(step, X, len(source))
                X = step.transform(X)
                if traced is None:
                    names = _names_after(step, X.shape[1])
                    source = np.arange(len(names))
                else:
                    source = source[traced]
            model = model.steps[-1][1] if hasattr(model, "steps") else model
            inside = fitted_inside(model)
            if inside is None:
                break
            model = inside
        if not has_columns(model):
            raise ValueError(
                "contributions of columns need an estimator of lokl on kernels of columns, got "
                f"{type(model).__name__}; models of regions and stored kernels have none"
            )
        return cls(model, X, views_of(model, views), names, source)

    def contributions(self, outcome: Array | None, sampling: Sampling) -> ColumnContributions:
        """Return the contributions of the columns.

        Parameters
        ----------
        outcome : array of shape (n_samples, n_tasks) or None
            Weights of the decisions about classes or targets; None keeps all of them.
        sampling : Sampling
        """
        samples = self.estimator._validate_for_predict(self.Z)
        used = self._columns_used()
        pairs = [
            (v, c)
            for v, view in enumerate(self.views)
            for c in np.unique(self.source[[c for k in view.kernels for c in used[k]]])
        ]
        position = {pair: k for k, pair in enumerate(pairs)}
        of_view = {k: v for v, view in enumerate(self.views) for k in view.kernels}
        n_tasks = 1 if self.estimator._is_flat() else len(self.estimator._tasks()[1])
        shape = (samples.n_samples, len(pairs)) if outcome is not None else (
            samples.n_samples, n_tasks, len(pairs)
        )  # fmt: skip
        values = np.zeros(shape)
        step = max(_BLOCK // max(n_tasks * len(self.source), 1), 1)
        for rows in slices(samples.n_samples, step):
            block = samples.take(np.arange(rows.start, rows.stop))
            for k, own in enumerate(_by_kernel(self.estimator._model, block, used, sampling)):
                own = own if outcome is None else np.einsum("nt,ntc->nc", outcome[rows], own)
                places = np.array([position[of_view[k], s] for s in self.source[used[k]]])
                _add_at(values[rows], places, own)
        flat = values[:, 0] if outcome is None and self.estimator._is_flat() else values
        return ColumnContributions(
            [view.name for view in self.views],
            [self.columns[c] for _, c in pairs],
            np.array([v for v, _ in pairs], dtype=np.intp),
            flat,
            tuple(sorted(sampling.used)),
        )

    def _columns_used(self) -> list[list[int]]:
        """Return the columns that each kernel reads."""
        every = range(self.Z.shape[1])
        used = (kernel.columns_used() for kernel in self.estimator.kernels_)
        return [[*every] if own is None else [*map(int, own)] for own in used]


def has_columns(model: Any) -> bool:
    """Whether contributions of a fitted estimator can be divided among columns."""
    known = (GatedMachine, AverageVote, Vote, TrustedVote)
    if not isinstance(getattr(model, "_model", None), known):
        return False
    return not any(kernel.is_stored for kernel in model.kernels_)


def _add_at(out: Array, places: Array, values: Array) -> None:
    """Add values to places of the last axis, several to the same place."""
    if len(np.unique(places)) == len(places):
        out[..., places] += values
        return
    for k, place in enumerate(places):
        out[..., place] += values[..., k]


def _steps(model: Any) -> list[Any]:
    """Return the transformers of a fitted pipeline, those of pipelines inside it one by one."""
    if not hasattr(model, "steps"):
        return []
    steps = [step for _, step in model.steps[:-1] if step is not None and step != "passthrough"]
    return [inner for step in steps for inner in _flattened(step)]


def _flattened(step: Any) -> list[Any]:
    return [*_steps(step), *_flattened(step.steps[-1][1])] if hasattr(step, "steps") else [step]


def _trace(step: Any, X: Any, n_columns: int) -> Array | None:
    """Return the column that each column after a transformer comes from, None if they are mixed.

    Parameters
    ----------
    step : fitted transformer
    X : samples before it
    n_columns : int
        Columns before it.
    """
    if isinstance(step, ColumnEncoder):
        widths = [1 if own is None else len(own) for own in step.categories_]
        return np.repeat(np.arange(n_columns), widths)
    if isinstance(step, ColumnScaler):
        return step.sources()
    if hasattr(step, "encoder_") and hasattr(step, "kinds_"):
        # A TablePreparation selects the columns of the model by name.
        return _trace(step.encoder_, X, step.encoder_.n_features_in_)
    if hasattr(step, "get_support"):
        return np.flatnonzero(step.get_support())
    if hasattr(step, "categories_") and hasattr(step, "_n_features_outs"):
        return np.repeat(np.arange(n_columns), step._n_features_outs)
    if hasattr(step, "output_indices_"):
        return _trace_parts(step, X)
    if isinstance(step, OneToOneFeatureMixin):
        return np.arange(n_columns)
    if hasattr(step, "statistics_") and not getattr(step, "add_indicator", False):
        # An imputer drops columns without any value, unless it keeps them.
        empty = np.isnan(np.asarray(step.statistics_, dtype=float))
        return np.flatnonzero(~empty | getattr(step, "keep_empty_features", False))
    return None


def _trace_parts(step: Any, X: Any) -> Array | None:
    """Return the sources of the columns after a ColumnTransformer, None if they are mixed."""
    sources = np.empty(max(part.stop for part in step.output_indices_.values()), dtype=np.intp)
    for name, inner, columns in step.transformers_:
        part = step.output_indices_[name]
        if part.start == part.stop:
            continue
        chosen = resolve_columns(columns, X)
        traced: Array | None = np.arange(len(chosen))
        if not isinstance(inner, str):
            some = X.iloc[:, chosen] if hasattr(X, "iloc") else X[:, chosen]
            for own in _flattened(inner):
                stage = None if traced is None else _trace(own, some, len(traced))
                traced = None if traced is None or stage is None else traced[stage]
                some = own.transform(some)
        if traced is None:
            return None
        sources[part] = chosen[traced]
    return sources


def _names_after(step: Any, n_columns: int) -> list[str]:
    """Return the names of columns after a transformer that mixes them."""
    if hasattr(step, "get_feature_names_out"):
        return [str(name) for name in step.get_feature_names_out()]
    return [f"x{c}" for c in range(n_columns)]


def _by_kernel(
    model: Any, samples: Samples, used: Sequence[Sequence[int]], sampling: Sampling
) -> Iterator[Array]:
    """Yield the contributions of the columns of each kernel, (n_samples, n_tasks, n_columns)."""
    total = model.contributions(samples)
    for k, (values, columns) in enumerate(
        zip(_values(model, samples, sampling), used, strict=True)
    ):
        own = values[:, :, columns]
        rest = (total[:, k] - own.sum(axis=2)) / max(len(columns), 1)
        yield own + rest[:, :, np.newaxis]


def _values(model: Any, samples: Samples, sampling: Sampling) -> Iterator[Array]:
    """Yield values of columns for each kernel of a model, (n_samples, n_tasks, n_features)."""
    if isinstance(model, GatedMachine):
        return _gated_values(model, samples, sampling)
    if isinstance(model, AverageVote):
        return _average_values(model, samples, sampling)
    if isinstance(model, Vote):
        return _vote_values(model, samples, sampling)
    if isinstance(model, TrustedVote):
        return _trusted_values(model, samples, sampling)
    raise TypeError(f"no values of columns for {type(model).__name__}")


def _seen_values(
    kernel: Any, i: int, samples: Samples, support: Samples, coef: Array, sampling: Sampling
) -> Array:
    """Return values of columns for all samples, 0 for those that lack the view of kernel `i`.

    Parameters
    ----------
    kernel : Kernel
    i : int
    samples, support : Samples
    coef : array of shape (n_support, n_tasks)
        0 for support vectors that lack the view.
    sampling : Sampling
    """
    stored = np.flatnonzero((coef != 0).any(axis=1))
    out = np.zeros((samples.n_samples, coef.shape[1], samples.filled.shape[1]))
    rows = samples.rows_seen_by(i)
    if len(stored) and len(rows):
        X, Z = samples.filled[rows], support.filled[stored]
        out[rows] = column_values(kernel, X, Z, coef[stored], sampling)
    return out


def _gated_values(model: GatedMachine, samples: Samples, sampling: Sampling) -> Iterator[Array]:
    """Yield values for ``f_i(x) = sum_j <h_i(x), h_i(x_j)> k_i(x, x_j) u_j``."""
    learned, coef = model.kernel, model.dual_coef.T
    support = learned.samples(model.support.vectors)
    near, far = (with_rank(learned.gates(own)) for own in (samples, support))
    share = None
    if learned.pair_normalized:
        share = 1.0 / np.einsum("nir,mir->nm", near, far)
    rank, n_tasks = near.shape[2], coef.shape[1]
    for i, kernel in enumerate(learned.kernels):
        loads = (far[:, i, :, np.newaxis] * coef[:, np.newaxis]).reshape(len(coef), -1)
        if share is None:
            values = _seen_values(kernel, i, samples, support, loads, sampling)
        else:
            # Coefficients differ between samples.
            values = np.concatenate(
                [
                    _seen_values(
                        kernel, i, samples.take(np.array([row])), support,
                        loads * share[row, :, np.newaxis], sampling,
                    )
                    for row in range(samples.n_samples)
                ]
            )  # fmt: skip
        by_rank = values.reshape(len(values), rank, n_tasks, -1)
        yield np.einsum("nr,nrtc->ntc", near[:, i], by_rank)


def _expert_coef(model: Any, support: Array, coef: Array) -> Array:
    """Return coefficients of an expert on all support vectors, (n_support, n_tasks).

    Parameters
    ----------
    model : ExpertVote
    support : int array
        Training samples that are support vectors of the expert.
    coef : array of shape (n_stored, n_tasks)
        Its coefficients; rows of zeros are left out.
    """
    positions, out = (
        model.support.positions,
        np.zeros((len(model.support.positions), coef.shape[1])),
    )
    order = np.argsort(positions)
    places = order[np.searchsorted(positions, support, sorter=order)]
    out[places] = coef[(coef != 0).any(axis=1)]
    return out


def _support_of(model: Any) -> Samples:
    """Return the support vectors of a vote as samples of its kernels."""
    kernels = [expert.kernel for expert in model.experts]
    names = [expert.name for expert in model.experts]
    vectors = as_samples(model.support.vectors)
    return read_samples(kernels, names, Samples(vectors, vectors))


def _n_seen(samples: Samples, n_kernels: int) -> Array:
    """Return the number of views of each sample, (n_samples,)."""
    if samples.present is None:
        return np.full(samples.n_samples, n_kernels)
    return np.asarray(samples.present.sum(axis=1))


def _average_values(model: AverageVote, samples: Samples, sampling: Sampling) -> Iterator[Array]:
    support, weights = _support_of(model), model.weights(samples)
    for i, expert in enumerate(model.experts):
        coef = _expert_coef(model, expert.support, expert.coef)
        values = _seen_values(expert.kernel, i, samples, support, coef, sampling)
        yield values * weights[:, i, np.newaxis, np.newaxis]


def _vote_values(model: Vote, samples: Samples, sampling: Sampling) -> Iterator[Array]:
    """Yield values for ``g_i(x) squash(f_i(x))``, by the mean slope of the squashing function."""
    support, weights = _support_of(model), model.weights(samples)
    gates, n_kernels = model.weights(support), len(model.experts)
    for i, expert in enumerate(model.experts):
        coef, own = (
            _expert_coef(model, expert.support, expert.coef),
            np.ones((samples.n_samples, 1)),
        )
        if expert.gated:
            # The weights of a sample without some views are divided among fewer kernels.
            coef *= (gates[:, i] * _n_seen(support, n_kernels))[:, np.newaxis]
            own = (weights[:, i] * _n_seen(samples, n_kernels))[:, np.newaxis]
        values = _seen_values(expert.kernel, i, samples, support, coef, sampling)
        values *= own[:, :, np.newaxis]
        if model.squash is not None:
            rows, decision = samples.rows_seen_by(i), np.zeros(values.shape[:2])
            decision[rows] = expert.decide(samples.seen_by(i), own[rows, 0])
            values *= _mean_slope(model.squash, decision, values.sum(axis=2))[:, :, np.newaxis]
        yield values * weights[:, i, np.newaxis, np.newaxis]


def _mean_slope(function: Any, end: Array, change: Array) -> Array:
    """Return the mean slope of a function on the way to `end`, a `change` away."""
    change = np.where(np.abs(change) < _FLAT, _FLAT, change)
    return np.asarray((function(end) - function(end - change)) / change)


def _trusted_values(model: TrustedVote, samples: Samples, sampling: Sampling) -> Iterator[Array]:
    """Yield values for the evidence of each expert, by its mean slope.

    The evidence depends on the decision of the expert and on its contribution to the joint model.
    """
    support, blocks = _support_of(model), [*model._blocks(samples)]
    outputs = ExpertOutputs(
        *(
            np.concatenate([getattr(block, field.name) for block in blocks])
            for field in fields(ExpertOutputs)
        )
    )
    joint = outputs.present / np.sqrt(np.maximum(outputs.present.sum(axis=1, keepdims=True), 1))
    for i, expert in enumerate(model.experts):
        coef = np.hstack(
            [
                _expert_coef(model, expert.support, expert.coef),
                _expert_coef(model, expert.joint_support, expert.joint_coef),
            ]
        )
        values = _seen_values(expert.kernel, i, samples, support, coef, sampling)
        n_tasks = expert.coef.shape[1]
        values[:, n_tasks:] *= joint[:, i, np.newaxis, np.newaxis]
        slopes = _evidence_slopes(model, outputs, i, values.sum(axis=2))
        yield np.einsum("not,ntc->noc", slopes, values)


def _evidence_slopes(model: TrustedVote, outputs: ExpertOutputs, i: int, change: Array) -> Array:
    """Return the mean slope of the contribution of expert `i`, (n_samples, n_tasks, n_outputs).

    Parameters
    ----------
    model : TrustedVote
    outputs : ExpertOutputs
    i : int
    change : array of shape (n_samples, n_outputs)
        Change of its decision, and of its contribution to the joint model, from no columns to all.
    """
    n_tasks = outputs.decision.shape[2]
    end = np.concatenate([outputs.decision[:, i], outputs.contribution[:, i]], axis=1)

    def contribution(at: Array) -> Array:
        decision, joint = outputs.decision.copy(), outputs.contribution.copy()
        decision[:, i], joint[:, i] = at[:, :n_tasks], at[:, n_tasks:]
        moved = replace(outputs, decision=decision, contribution=joint)
        return np.concatenate([pool.contributions(moved)[:, i] for pool in model.pools], axis=1)

    step = _STEP * np.maximum(np.abs(end).max(axis=0), 1e-3)
    columns = []
    for t in range(change.shape[1]):
        shift, slope = np.zeros(change.shape[1]), np.zeros((len(end), n_tasks))
        shift[t] = step[t]
        for node, weight in zip(_NODES, _NODE_WEIGHTS, strict=True):
            at = end - (0.5 - 0.5 * node) * change
            slope += 0.5 * weight * (contribution(at + shift) - contribution(at - shift))
        columns.append(slope / (2.0 * step[t]))
    return np.stack(columns, axis=2)


def column_importance(
    model: Any,
    X: Any,
    *,
    views: Views | None = None,
    n_bootstraps: int = 200,
    n_largest: int = 10,
    n_orders: int = N_ORDERS,
    random_state: Any = None,
) -> SummaryTable:
    """Return how much each column contributes to predictions, and how stable its rank is.

    Parameters
    ----------
    model, X, views, n_orders
        As in :func:`column_contributions`.
    n_bootstraps : int, default=200
        Bootstrap samples of the rows of `X`. The model is not fitted again.
    n_largest : int, default=10
        Rank up to which a column counts as selected.
    random_state : int, RandomState or None
        Seed of the bootstrap samples and of random orders.

    Returns
    -------
    table : SummaryTable
        A row for each column, most important first: ``importance``, the mean absolute contribution
        with its 95 % interval (over several classes or targets, their mean); ``direction``, the
        correlation of its contribution and its values, positive if larger values speak for the
        second of two classes or for a larger target, NaN with more classes or for words; and
        ``selected``, the share of bootstrap samples in which it is among the `n_largest`.

    See Also
    --------
    lokl.explain.column_contributions : For each sample.
    lokl.explain.ColumnDisplay : Figure of it.
    lokl.explain.view_importance : By shuffling.

    Examples
    --------
    >>> import numpy as np
    >>> from lokl import UniformMKLClassifier
    >>> from lokl.explain import column_importance
    >>> X = np.random.RandomState(0).normal(size=(100, 20))
    >>> model = UniformMKLClassifier(["rbf"], C=10).fit(X, X[:, 3] + X[:, 7] > 0)
    >>> table = column_importance(model, X, n_largest=2, random_state=0)
    >>> sorted(table.rows[:2])
    ['x3', 'x7']
    """
    if n_bootstraps < 1 or n_largest < 1:
        raise ValueError(
            f"n_bootstraps and n_largest must be 1 or more, got {n_bootstraps!r} and {n_largest!r}"
        )
    rng, X = check_random_state(random_state), as_pandas(X)
    found = column_contributions(
        model, X, views=views, n_orders=n_orders, random_state=rng
    ).merged()
    sizes = np.abs(found.values)
    sizes = sizes if sizes.ndim == 2 else sizes.mean(axis=1)
    count = min(n_largest, sizes.shape[1])
    importance, selected = bootstrap_importance(sizes, n_bootstraps, count, rng)
    order = np.argsort(-sizes.mean(axis=0), kind="stable")
    columns = {
        **interval_columns("importance", [importance[c] for c in order]),
        "direction": _directions(found, X)[order],
        "selected": selected[order],
    }
    title = f"Columns: mean absolute contribution, direction, share of top {count}"
    return SummaryTable(title, "column", tuple(found.labels[c] for c in order), columns)


def bootstrap_importance(
    sizes: Array, n_bootstraps: int, count: int, rng: np.random.RandomState
) -> tuple[list[Interval], Array]:
    """Return mean sizes of contributions with 95 % intervals, and how often columns lead.

    Parameters
    ----------
    sizes : array of shape (n_samples, n_columns)
    n_bootstraps : int
        Bootstrap samples of the rows.
    count : int
        Rank up to which a column leads.
    rng : RandomState

    Returns
    -------
    importance : list of Interval
    selected : array of shape (n_columns,)
        Share of the bootstrap samples in which a column is among the `count` largest.
    """
    n, n_columns = sizes.shape
    # Times that each sample is drawn.
    times = rng.multinomial(n, np.full(n, 1.0 / n), size=n_bootstraps)
    means = times @ sizes / n
    leading = np.argpartition(-means, count - 1, axis=1)[:, :count]
    selected = np.bincount(leading.ravel(), minlength=n_columns) / n_bootstraps
    low, high = np.quantile(means, [0.5 - _LEVEL / 2, 0.5 + _LEVEL / 2], axis=0)
    ends = zip(sizes.mean(axis=0).tolist(), low.tolist(), high.tolist(), strict=True)
    return [Interval(*values) for values in ends], selected


def _directions(found: ColumnContributions, X: Any) -> Array:
    """Return the correlation of each column with its contributions; NaN if it is unknown."""
    out = np.full(len(found.columns), np.nan)
    names = column_names(X) or [f"x{c}" for c in range(X.shape[1])]
    place = {name: c for c, name in enumerate(names)}
    if found.values.ndim > 2:
        return out
    for k, name in enumerate(found.columns):
        if name not in place:
            continue
        column = take_columns(X, [place[name]])
        column = column.iloc[:, 0] if hasattr(column, "iloc") else as_dense(column)[:, 0]
        if column.dtype.kind not in "biuf":
            continue
        values, own = np.asarray(column, dtype=float), found.values[:, k]
        known = np.isfinite(values)
        if known.sum() > 1 and np.ptp(values[known]) > 0 and np.ptp(own[known]) > 0:
            out[k] = np.corrcoef(values[known], own[known])[0, 1]
    return out
