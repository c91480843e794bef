"""Folds that advance together: what waits for what, and that nothing goes on unseen."""

import random
import threading
import time

import pytest

from lokl.search.lockstep import run_folds_in_lockstep


class _Folds:
    """Folds that note when they begin and end a step, and take some time for it."""

    def __init__(self, n_folds, n_steps, seed, fails=None):
        self.events, self.lock, self.n_steps = [], threading.Lock(), n_steps
        self.rng, self.fails = random.Random(seed), fails
        self.folds = [self._fold(fold) for fold in range(n_folds)]

    def _note(self, *event):
        with self.lock:
            self.events.append(event)
            return self.rng.random() / 500

    def _fold(self, fold):
        for step in range(self.n_steps):
            time.sleep(self._note("begin", fold, step))
            if (fold, step) == self.fails:
                raise ValueError("this step fails")
            self._note("end", fold, step)
            yield fold, step

    def when(self, *event):
        return self.events.index(event)


@pytest.mark.parametrize("leads", [False, True])
@pytest.mark.parametrize("jobs", [1, 2, 3, 8])
def test_all_folds_do_every_step(jobs, leads):
    made = _Folds(5, 4, seed=jobs)
    found = list(run_folds_in_lockstep(made.folds, 4, jobs, first_leads=leads))
    assert found == [[(fold, step) for fold in range(5)] for step in range(4)]


@pytest.mark.parametrize("seed", range(10))
def test_others_begin_a_step_when_the_first_has_done_it(seed):
    made = _Folds(4, 5, seed)
    list(run_folds_in_lockstep(made.folds, 5, 3, first_leads=True))
    for step in range(5):
        for fold in range(1, 4):
            assert made.when("end", 0, step) < made.when("begin", fold, step)


@pytest.mark.parametrize("seed", range(10))
def test_no_fold_is_more_than_a_step_ahead_of_what_is_asked_for(seed):
    made = _Folds(4, 6, seed)
    steps = run_folds_in_lockstep(made.folds, 6, 3)
    for asked in range(3):
        next(steps)
        time.sleep(0.01)
        assert max(step for _, _, step in made.events) <= asked + 1
    # Nothing goes on after it is closed.
    steps.close()
    before = len(made.events)
    time.sleep(0.02)
    assert len(made.events) == before
    assert [kind for kind, *_ in made.events].count("begin") == before // 2


def test_the_error_of_a_fold_is_told_and_ends_all():
    made = _Folds(3, 4, 0, fails=(1, 2))
    with pytest.raises(ValueError, match="this step fails"):
        list(run_folds_in_lockstep(made.folds, 4, 2))
    assert not [t for t in threading.enumerate() if t.name.startswith("lokl-folds")]
