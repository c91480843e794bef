"""A model that takes tables as they are: preparation and method in one pipeline."""

from collections.abc import Mapping, Sequence
from typing import Any

from sklearn.pipeline import Pipeline

from lokl import methods
from lokl._methods import METHODS, Method
from lokl.kernels import RBF, per_view, standard
from lokl.search import calibrated
from lokl.search.auto import AutoMKLClassifier, AutoMKLRegressor
from lokl.tables.columns import CATEGORICAL
from lokl.tables.preparation import TablePreparation, frequent_words, places_of
from lokl.tables.sources import TableError
from lokl.tables.table import Table


def learn(
    table: Table,
    method: str | None = None,
    *,
    C: float = 1.0,
    seed: int = 0,
    time_limit: float | None = None,
    n_jobs: int | None = None,
) -> Pipeline:
    """Fit a model to a table.

    Parameters
    ----------
    table : Table
        With a target.
    method : str, optional
        As tables show it or as its classes are called: "trusted vote", "LMKL". None chooses
        everything by cross-validation (AutoMKL), `C` included.
    C : float, default=1.0
        Cost of errors beyond the margin, of a method that is asked for.
    seed : int, default=0
    time_limit : float, optional
        Seconds for choosing.
    n_jobs : int, optional
        Threads; None is one for each core.

    Returns
    -------
    model : Pipeline
        Of a :class:`TablePreparation` and an estimator, calibrated where it has no probabilities
        of its own; it takes data frames like the table's.
    """
    preparation, y = preparation_for(table), target_of(table)
    if method is None:
        numbers = table.task == "numbers"
        auto = automatic_for(places_in(preparation), numbers, seed, time_limit)
        auto.set_params(n_jobs=n_jobs)
        model = Pipeline([("preparation", preparation), ("model", auto)])
        return model.fit(table.frame, y, model__groups=groups_of(table))
    kind = estimator_class(method, table.task == "numbers")
    X = preparation.fit_transform(table.frame, y)
    places = preparation.prepared_views_
    kernels = per_view(RBF(), places) if len(places) > 1 else standard()
    model = kind(kernels, C=C, random_state=seed, n_jobs=n_jobs).fit(X, y)
    if table.task == "classes" and not hasattr(model, "predict_proba"):
        model = calibrated(model, X, y, groups=groups_of(table))
    return Pipeline([("preparation", preparation), ("model", model)])


def preparation_for(table: Table) -> TablePreparation:
    """Return the preparation of a table, not fitted: its words have their columns already."""
    name = None if table.target is None else str(table.target.name)
    words = {
        column: frequent_words(table.frame[column])
        for column, kind in table.kinds.items()
        if kind == CATEGORICAL
    }
    return TablePreparation(
        table.views, table.kinds, table.on, name, table.task, table.positive, words
    )


def places_in(preparation: TablePreparation) -> dict[str, list[int]]:
    """Return places of each view among prepared columns, also before the preparation is fitted."""
    return places_of(preparation.views, preparation.categories or {})


def target_of(table: Table) -> Any:
    """Return what is to be predicted, as an array."""
    if table.target is None:
        raise TableError("no target; name the column to predict with --target")
    return table.target.to_numpy()


def groups_of(table: Table) -> Any:
    """Return the group of each sample, as words, or None."""
    return None if table.groups is None else table.groups.astype(str).to_numpy()


def automatic_for(
    places: Mapping[str, Sequence[int]], numbers: bool, seed: int, time_limit: float | None = None
) -> Any:
    """Return the estimator that chooses everything for prepared samples with views at places."""
    kind: Any = AutoMKLRegressor if numbers else AutoMKLClassifier
    return kind(
        dict(places) if len(places) > 1 else None,
        every_view=True,
        time_limit=time_limit,
        random_state=seed,
    )


def estimator_class(method: str, numbers: bool) -> Any:
    """Return the class of a method, by any of its names, for classes or for numbers."""
    wanted = plain_name(method)
    found = [own for own in METHODS if wanted in names_of(own)]
    if not found:
        known = ", ".join(own.name for own in METHODS)
        raise TableError(f"unknown method {method!r}; known are {known}")
    return getattr(methods, _class_name(found[0], numbers))


def names_of(method: Method) -> set[str]:
    """Return all names by which users may ask for a method, as :func:`plain_name` gives them."""
    return {plain_name(name) for name in (method.name, method.stem, *method.classes)}


def _class_name(method: Method, numbers: bool) -> str:
    if not numbers:
        return method.classifier
    if method.regressor is None:
        able = ", ".join(own.name for own in METHODS if own.regressor)
        raise TableError(f"{method.name} predicts classes only; numbers are predicted by {able}")
    return method.regressor


def plain_name(name: str) -> str:
    """Return a name without case, spaces and signs."""
    return "".join(sign for sign in name.lower() if sign.isalnum())
