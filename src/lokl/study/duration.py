"""Expected duration of a comparison, from the size of the tables and then from finished fits."""

import time
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from joblib import effective_n_jobs

from lokl.study.candidates import OURS, VIEW, StudyCandidate, TableSamples
from lokl.study.experiment import CandidateSplit
from lokl.study.run_folder import Record

# Seconds of a fit by role: constant, for n_samples squared, and for n_samples times n_columns.
# Measured on one core of 2021; finished fits of the run replace them.
_SECONDS = {OURS: (0.3, 1.2e-6, 0.0), VIEW: (0.25, 5e-7, 0.0)}
_SECONDS_OF_BASELINES = (0.1, 3e-7, 5e-6)
# Seconds of the last fit and the report.
_REPORT = 2.0


class RunClock:
    """Progress of the fits of a comparison.

    Parameters
    ----------
    cells : sequence of CandidateSplit
        Unfinished cells, in the order in which they are started.
    candidates : mapping of str to StudyCandidate
    samples : TableSamples
        All samples.
    jobs : int
        Processes, -1 for all cores.
    """

    def __init__(
        self,
        cells: Sequence[CandidateSplit],
        candidates: dict[str, StudyCandidate],
        samples: TableSamples,
        jobs: int,
    ):
        self._waiting = dict.fromkeys(cells)
        n, d = len(samples.y), sum(map(len, samples.columns.values()))
        self._expected = {
            name: float(np.dot(_SECONDS.get(c.role, _SECONDS_OF_BASELINES), (1.0, n * n, n * d)))
            for name, c in candidates.items()
        }
        self._measured: dict[str, list[float]] = {}
        self._jobs = max(1, min(effective_n_jobs(jobs), len(cells)))
        self._begun = self._changed = time.monotonic()
        self._left = self.estimate()

    def finished(self, record: Record) -> None:
        """Take the record of a finished cell into account."""
        cell = CandidateSplit.of(record)
        if cell.permutation and cell not in self._waiting:
            # Now it is known which candidate is chosen.
            self._waiting = {
                replace(own, candidate=cell.candidate) if own.permutation else own: None
                for own in self._waiting
            }
        self._waiting.pop(cell, None)
        if record["error"] is None:
            self._measured.setdefault(cell.candidate, []).append(record["cell seconds"])
        self._left, self._changed = self.estimate(), time.monotonic()

    def estimate(self) -> float:
        """Return the seconds that the unfinished cells, the last fit and the report take."""
        pairs = [
            (float(np.mean(own)), self._expected[name]) for name, own in self._measured.items()
        ]
        # How much slower this machine and these tables are than expected.
        factor = sum(own for own, _ in pairs) / sum(e for _, e in pairs) if pairs else 1.0
        seconds = {
            name: float(np.mean(self._measured.get(name, [factor * expected])))
            for name, expected in self._expected.items()
        }
        return sum(seconds[cell.candidate] for cell in self._waiting) / self._jobs + _REPORT

    @property
    def left(self) -> float:
        """Seconds that are left."""
        return max(self._left - (time.monotonic() - self._changed), 0.0)

    @property
    def share(self) -> float:
        """Share of the time that has passed, from 0 to 1."""
        passed = time.monotonic() - self._begun
        return passed / max(passed + self.left, 1e-9)

    @property
    def current(self) -> str:
        """Name of the candidate that is fitted, empty after the last one."""
        return next((cell.candidate for cell in self._waiting), "")
