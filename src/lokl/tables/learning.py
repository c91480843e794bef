"""A model that takes tables as they are: preparation and method in one pipeline."""

from typing import Any

from sklearn.pipeline import Pipeline

from lokl import estimators
from lokl._methods import METHODS, Method
from lokl.kernels import RBF, per_view, standard
from lokl.selection import calibrated
from lokl.tables.errors import TableError
from lokl.tables.preparation import TablePreparation
from lokl.tables.table import Table


def default_method(table: Table) -> str:
    """Name of the method that is taken where none is asked for."""
    return "trusted vote" if len(table.views) > 1 else "UNIFORM"


def learn(table: Table, method: str | None = None, *, C: float = 1.0, seed: int = 0) -> Pipeline:
    """Fit a model to a table.

    Parameters
    ----------
    table : Table
        With a target.
    method : str, optional
        As tables show it or as its classes are called: "trusted vote", "LMKL". None is the trusted
        vote for several views, the average of the standard kernels for one.
    C : float, default=1.0
        Cost of errors beyond the margin.
    seed : int, default=0

    Returns
    -------
    model : Pipeline
        Of a :class:`TablePreparation` and an estimator, calibrated where it has no probabilities
        of its own; it takes data frames like the table's.
    """
    if table.target is None:
        raise TableError("no target; name the column to predict with --target")
    kind = estimator_class(method or default_method(table), table.task == "numbers")
    preparation = TablePreparation(table.views, table.kinds, table.on, table.target.name)
    X = preparation.fit_transform(table.frame)
    places = preparation.prepared_views_
    kernels = per_view(RBF(), places) if len(places) > 1 else standard()
    y = table.target.to_numpy()
    model = kind(kernels, C=C, random_state=seed).fit(X, y)
    if table.task == "classes" and not hasattr(model, "predict_proba"):
        groups = None if table.groups is None else table.groups.astype(str).to_numpy()
        model = calibrated(model, X, y, groups=groups)
    return Pipeline([("preparation", preparation), ("model", model)])


def estimator_class(method: str, numbers: bool) -> Any:
    """Return the class of a method, by any of its names, for classes or for numbers."""
    wanted = _plain(method)
    found = [own for own in METHODS if wanted in map(_plain, (own.name, own.stem, *own.classes))]
    if not found:
        known = ", ".join(own.name for own in METHODS)
        raise TableError(f"unknown method {method!r}; known are {known}")
    return getattr(estimators, _class_name(found[0], numbers))


def _class_name(method: Method, numbers: bool) -> str:
    if not numbers:
        return method.classifier
    if method.regressor is None:
        able = ", ".join(own.name for own in METHODS if own.regressor)
        raise TableError(f"{method.name} predicts classes only; numbers are predicted by {able}")
    return method.regressor


def _plain(name: str) -> str:
    return "".join(sign for sign in name.lower() if sign.isalnum())
