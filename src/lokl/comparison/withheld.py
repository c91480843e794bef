"""What a model loses without a view: the same settings, fitted again to the views that are left."""

from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from lokl._arrays import Array
from lokl._layers import unwrapped
from lokl.auto import PrepareColumns
from lokl.comparison.parts import Part
from lokl.comparison.scoring import Question


def without_each_view(
    model: Any, part: Part, test: Part, predicted: Array, question: Question
) -> dict[str, list[float]]:
    """Score a model with and without each view, both on samples that have another view.

    Parameters
    ----------
    model : Pipeline
        That learned from `part`; it begins with a preparation of tables.
    part, test : Part
    predicted : array of shape (n_test,)
        What the model says about `test`.
    question : Question

    Returns
    -------
    scores : dict of view to [with it, without it]
        Views without which nothing can be learned or judged are left out.
    """
    learner, _ = unwrapped(model)
    X, Z = model[0].transform(part.frame), model[0].transform(test.frame)
    truth = question.codes(test.y)
    found = {}
    for view in part.places:
        columns = [c for name, own in part.places.items() if name != view for c in own]
        smaller = _without(view, learner, part, columns)
        rows, asked = (~np.isnan(values[:, columns]).all(axis=1) for values in (X, Z))
        if smaller is None or not asked.any() or len(np.unique(part.y[rows])) < 2:
            continue
        smaller.fit(X[rows][:, columns], part.y[rows])
        said = question.codes(smaller.predict(Z[asked][:, columns]))
        pair = [
            question.scores(truth[asked], one, None)["score"] for one in (predicted[asked], said)
        ]
        if None not in pair:
            found[view] = pair
    return found


def _without(view: str, learner: Any, part: Part, columns: list[int]) -> Pipeline | None:
    """Return a model of the columns that are left; None where no kernel is."""
    moved = {column: place for place, column in enumerate(columns)}
    kernels = {}
    for name, kernel in learner.kernels.items():
        # Views stand side by side, and a kernel has one of them.
        first, last = kernel.columns.start, kernel.columns.stop - 1
        if first in moved:
            kernels[name] = kernel.kernel.on(slice(moved[first], moved[last] + 1))
    if not kernels:
        return None
    left = [own for name, own in part.places.items() if name != view]
    scale = PrepareColumns([np.array([moved[c] for c in own]) for own in left])
    return Pipeline([("scale", scale), ("model", clone(learner).set_params(kernels=kernels))])
