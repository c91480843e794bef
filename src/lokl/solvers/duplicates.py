"""Equal samples counted once, in an order that does not depend on that of the rows."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from lokl._arrays import Array, is_sparse
from lokl.solvers.problem import Dual, Problem


@dataclass(frozen=True, eq=False)
class Distinct:
    """The distinct samples of a squared hinge problem.

    Rounds that pick single samples treat a row written twice unlike a row of weight 2, and break
    ties by the order of the rows; on distinct samples in a fixed order they do neither.
    """

    rows: Array  # one row of each distinct sample and label, in a fixed order
    inverse: Array  # (n_samples,), place of every sample in `rows`
    share: Array  # (n_samples,), part of the sample in the cost of all its equals
    problem: Problem  # of the distinct samples, costs added up

    @classmethod
    def of(cls, X: Any, problem: Problem) -> "Distinct":
        """Find equal rows with equal labels."""
        names = names_of_rows(X, problem.target)
        _, rows, inverse = np.unique(names, return_index=True, return_inverse=True)
        cost = np.divide(
            1.0, problem.ridge, out=np.zeros_like(problem.ridge), where=problem.ridge > 0
        )
        total = np.bincount(inverse, weights=cost, minlength=len(rows))
        kept = problem.take(rows)
        ridge = np.divide(1.0, total, out=np.zeros_like(total), where=total > 0)
        return cls(rows, inverse, cost / total[inverse], replace(kept, ridge=ridge))

    def spread(self, dual: Dual) -> Dual:
        """Return a machine on the distinct samples as one on all samples."""
        coef = dual.coef[self.inverse] * self.share
        return replace(dual, coef=coef, decision=dual.decision[self.inverse])


def names_of_rows(X: Any, target: Array) -> Array:
    """Bytes that are equal for equal samples with equal targets, of which there may be several."""
    if is_sparse(X):
        starts, stops = X.indptr[:-1], X.indptr[1:]
        parts = [
            X.indices[a:b].tobytes() + X.data[a:b].tobytes() + t.tobytes()
            for a, b, t in zip(starts, stops, target, strict=True)
        ]
        return np.array(parts, dtype=object)
    # Adding zero turns minus zero into zero, which has other bytes.
    table = np.ascontiguousarray(np.column_stack([X, target]) + 0.0)
    return table.view(np.dtype((np.void, table.itemsize * table.shape[1]))).ravel()
