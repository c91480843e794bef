"""Models of tables: preparation, scaling and method in one pipeline."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.pipeline import Pipeline

from lokl import methods
from lokl._methods import METHODS, Method
from lokl._survival import survival_target
from lokl._text import plain_name, suggestion
from lokl._warnings import capture_warnings
from lokl.explain import PredictionSets
from lokl.kernels import RBF, Kernel, Laplacian, per_view, standard
from lokl.search import CalibratedMKLClassifier, KernelSearchCV, calibrated
from lokl.search.auto import AutoMKLClassifier, AutoMKLRegressor, AutoMKLSurvival
from lokl.search.columns import ColumnScaler
from lokl.search.cross_validation import make_folds
from lokl.tables.preparation import (
    REGRESSION,
    SURVIVAL,
    TablePreparation,
    categories_of,
    positions_of,
)
from lokl.tables.sources import TableError
from lokl.tables.table import CLASSIFICATION, Table

# Estimator that chooses everything for each task.
_AUTOMATIC: dict[str, Any] = {
    CLASSIFICATION: AutoMKLClassifier,
    REGRESSION: AutoMKLRegressor,
    SURVIVAL: AutoMKLSurvival,
}

# Methods of gene sets: the one that chooses the cost, and the one that selects sets.
_MIX, _SPARSE = "UniformMKL", "SimpleMKL"
# Powers of two of costs, and folds.
_COSTS, _FOLDS = range(-3, 10, 2), 5


def learn(
    table: Table,
    method: str | None = None,
    *,
    C: float = 1.0,
    seed: int = 0,
    time_limit: float | None = None,
    n_jobs: int | None = None,
    sets: bool = False,
) -> Pipeline:
    """Fit a model to a table.

    Parameters
    ----------
    table : Table
        With a target.
    method : str, optional
        Name of the method or of its class, such as "trusted vote" or "LMKL". None chooses
        everything by cross-validation (AutoMKL), including `C`. With gene sets, None is SimpleMKL
        of one RBF kernel for each set.
    C : float, default=1.0
        Cost of errors beyond the margin, if a method is given.
    seed : int, default=0
    time_limit : float, optional
        Seconds for the search.
    n_jobs : int, optional
        Number of threads; None is one for each core.
    sets : bool, default=False
        Whether the model has prediction sets, which takes five more fits.

    Returns
    -------
    model : Pipeline
        A :class:`TablePreparation`, a scaler and an estimator, calibrated if it has no
        probabilities of its own. It takes data frames like the table's.
    """
    if sets and table.task == SURVIVAL:
        raise TableError("prediction sets do not exist for survival; leave out --sets")
    preparation, y = preparation_for(table), target_of(table)
    if table.gene_sets:
        return learn_gene_sets(
            preparation, table.frame, y, table.gene_sets, method,
            C=None if method is None else C, groups=groups_of(table), seed=seed, n_jobs=n_jobs,
            sets=sets,
        )  # fmt: skip
    if method is None:
        places = places_in(preparation) if len(table.views) > 1 else None
        auto = automatic_for(places, table.task, seed, time_limit)
        auto.set_params(n_jobs=n_jobs)
        auto = PredictionSets(auto) if sets else auto
        model = Pipeline([("preparation", preparation), ("model", auto)])
        return model.fit(table.frame, y, model__groups=groups_of(table))
    kind = estimator_class(method, table.task)
    X = preparation.fit_transform(table.frame, y)
    views = preparation.prepared_views_
    # The kernels set their own widths, and gates expect columns of unit variance.
    scale = ColumnScaler(list(views.values()), unit=False)
    X = scale.fit_transform(X)
    is_vote = kind in (methods.TrustedVoteClassifier, methods.TrustedVoteSurvival)
    kernel: Kernel = Laplacian("median") if is_vote else RBF()
    kernels = per_view(kernel, views) if len(views) > 1 else standard()
    model = kind(kernels, C=C, random_state=seed, n_jobs=n_jobs)
    model = _with_probabilities(model, X, y, groups_of(table), sets)
    return Pipeline([("preparation", preparation), ("scale", scale), ("model", model)])


def _with_probabilities(model: Any, X: Any, y: Any, groups: Any, sets: bool) -> Any:
    """Return a fitted model, with probabilities of classes, and with prediction sets on request."""
    is_calibrated = not is_classifier(model) or hasattr(model, "predict_proba")
    if sets:
        model = model if is_calibrated else CalibratedMKLClassifier(model)
        return PredictionSets(model).fit(X, y, groups)
    model.fit(X, y)
    return model if is_calibrated else calibrated(model, X, y, groups=groups)


def learn_gene_sets(
    preparation: TablePreparation,
    frame: Any,
    y: Any,
    gene_sets: Mapping[str, Sequence[str]],
    method: str | None = None,
    *,
    C: float | None = None,
    groups: Any = None,
    seed: int = 0,
    n_jobs: int | None = None,
    sets: bool = False,
) -> Pipeline:
    """Fit a model with one kernel for each gene set.

    Parameters
    ----------
    preparation : TablePreparation
        Not fitted.
    frame : data frame
    y : array of shape (n_samples,)
    gene_sets : mapping of str to sequence of str
        Numeric columns of each set.
    method : str, optional
        SimpleMKL if not given.
    C : float, optional
        Cost of errors. None chooses it by cross-validation of the uniform mix of all sets, whose
        Gram matrix is computed once for all costs and folds.
    groups : array of shape (n_samples,), optional
    seed : int, default=0
    n_jobs : int, optional
    sets : bool, default=False
        Whether the model has prediction sets.

    Returns
    -------
    model : Pipeline
        As from :func:`learn`.
    """
    task = preparation.task
    X = preparation.fit_transform(frame, y)
    scale = ColumnScaler(list(preparation.prepared_views_.values()), unit=False)
    X = scale.fit_transform(X)
    place = {name: j for j, name in enumerate(preparation.get_feature_names_out())}
    kernels = {
        name: RBF("median").on([place[c] for c in columns]) for name, columns in gene_sets.items()
    }
    if C is None:
        mix = estimator_class(_MIX, task)(kernels)
        unit = float(np.std(y)) if task == REGRESSION else 1.0
        grid = {"C": [unit * 2.0**power for power in _COSTS]}
        folds = make_folds(
            _FOLDS, strata_of(y, task), classification=task != REGRESSION, groups=groups,
            rng=np.random.RandomState(seed),
        )  # fmt: skip
        search_class: Any = KernelSearchCV
        search = search_class(mix, grid, cv=folds, refit=False, n_jobs=n_jobs)
        # Its warnings are about a grid that is not the user's.
        capture_warnings(search.fit, X, y)
        C = float(search.best_params_["C"])
    kind = estimator_class(method or _SPARSE, task)
    model = kind(kernels, C=C, random_state=seed, n_jobs=n_jobs)
    model = _with_probabilities(model, X, y, groups, sets)
    return Pipeline([("preparation", preparation), ("scale", scale), ("model", model)])


def preparation_for(table: Table) -> TablePreparation:
    """Return the preparation of a table, not fitted, with the categories of all samples."""
    name = None if table.target is None else str(table.target.name)
    categories = categories_of(table.frame, table.kinds)
    event = None if table.event is None else str(table.event.name)
    return TablePreparation(
        table.views,
        table.kinds,
        table.on,
        name,
        table.task,
        table.positive,
        categories,
        list(table.covariates) or None,
        event,
    )


def places_in(preparation: TablePreparation) -> dict[str, list[int]]:
    """Return the encoded columns of each view, which are known before fitting."""
    return positions_of(preparation.views, preparation.categories or {})


def target_of(table: Table) -> Any:
    """Return the target as an array of shape (n_samples,); events and times for survival."""
    if table.target is None:
        raise TableError("no target; name the column to predict with --target")
    if table.task == SURVIVAL:
        return survival_target(table.event.to_numpy(dtype=bool), table.target.to_numpy())
    return table.target.to_numpy()


def strata_of(y: Any, task: str | None) -> Any:
    """Return the classes, events or values of a target, by which samples are divided."""
    return np.asarray(y["event"] if task == SURVIVAL else y)


def groups_of(table: Table) -> Any:
    """Return the group of each sample as text, or None."""
    return None if table.groups is None else table.groups.astype(str).to_numpy()


def automatic_for(
    places: Mapping[str, Sequence[int]] | None,
    task: str | None,
    seed: int,
    time_limit: float | None = None,
) -> Any:
    """Return AutoMKL for encoded samples.

    Parameters
    ----------
    places : mapping of str to sequence of int
        Encoded columns of each view; None for one view of all columns.
    task : {"classification", "regression", "survival"} or None
        None is classification.
    seed : int
    time_limit : float, optional
        Seconds for the search.

    Returns
    -------
    model : AutoMKLClassifier, AutoMKLRegressor or AutoMKLSurvival
        Not fitted.
    """
    return _AUTOMATIC[task or CLASSIFICATION](
        None if places is None else dict(places),
        time_limit=time_limit,
        random_state=seed,
    )


def estimator_class(method: str, task: str | None) -> Any:
    """Return the class of a method by any of its names.

    Parameters
    ----------
    method : str
        Such as "trusted vote", "TrustedVote" or "TrustedVoteClassifier".
    task : {"classification", "regression", "survival"}

    Raises
    ------
    TableError
        The method is unknown, or is not for the task.
    """

    def name_of(method: Method) -> str | None:
        names = {REGRESSION: method.regressor, SURVIVAL: method.survival}
        return names.get(task or CLASSIFICATION, method.classifier)

    spec = method_named(method)
    name = name_of(spec)
    if name is None:
        able = ", ".join(other.name for other in METHODS if name_of(other))
        raise TableError(f"{spec.name} is not for {task}; use one of {able}")
    return getattr(methods, name)


def method_named(name: str) -> Method:
    """Return the method with a name, or raise a `TableError` that suggests one."""
    spec = next((spec for spec in METHODS if plain_name(name) in names_of(spec)), None)
    if spec is None:
        known = [spec.name for spec in METHODS]
        hint = suggestion(name, known) or f"; use one of {', '.join(known)}"
        raise TableError(f"unknown method {name!r}{hint}")
    return spec


def names_of(method: Method) -> set[str]:
    """Return all names of a method, in the form of :func:`plain_name`."""
    return {plain_name(name) for name in (method.name, method.stem, *method.classes)}
