"""Probabilities of the winner of a search, from decisions that the search has made already."""

from collections.abc import Sequence

import numpy as np
from sklearn.base import is_classifier

from lokl.selection.calibration import Calibration
from lokl.selection.work import Cell, Task


def calibration_of(task: Task, cells: Sequence[Cell]) -> Calibration | None:
    """Calibrate the held-out decisions of a candidate.

    Parameters
    ----------
    task : Task
    cells : sequence of Cell
        Of one candidate, one for each split.

    Returns
    -------
    calibration : Calibration or None
        None where the classifier has probabilities of its own, where decisions are not known,
        where a fold has not seen all classes, or where the candidate was fitted on a part of the
        samples only.
    """
    if not is_classifier(task.estimator) or hasattr(task.estimator, "predict_proba"):
        return None
    classes, codes = np.unique(np.ravel(task.y), return_inverse=True)
    tasks = 1 if len(classes) == 2 else len(classes)
    known = [cell.decision for cell in cells if cell.decision is not None]
    tests = [task.splits[cell.split][1] for cell in cells]
    expected = [(len(test), tasks) for test in tests]
    if not known or [decision.shape for decision in known] != expected:
        return None
    rows = np.concatenate(tests)
    weight = next(
        (v for name, v in task.fit_params.items() if name.endswith("sample_weight")), None
    )
    return Calibration.learn(
        np.concatenate(known),
        codes[rows],
        len(classes),
        None if weight is None else np.asarray(weight, dtype=float)[rows],
    )
