"""An interrupted solve ends at once and leaves nothing half done."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from solver_cases import budget, samples, signs

import lokl
from lokl.kernels import RBF, Callable
from lokl.solvers import Exact, epsilon_insensitive, hinge

N = 120
X, SCORE = samples(0, N)
K = RBF(0.5)(X)


class Interrupted:
    """A kernel function during whose `when`-th call for whole rows the user presses Ctrl-C."""

    def __init__(self, when):
        self.left = when

    def __call__(self, A, B):
        if 1 < len(A) < len(B) == N:
            self.left -= 1
            if self.left == 0:
                raise KeyboardInterrupt
        return RBF(0.5)(A, B)


@pytest.mark.parametrize("when", [1, 2, 3, 5])
@pytest.mark.parametrize(
    "problem",
    [hinge(signs(SCORE), 1.0), epsilon_insensitive(SCORE, 1.0, 0.1)],
    ids=["classification", "regression"],
)
def test_an_interrupted_gram_still_has_the_right_rows(when, problem):
    solver = Exact(tol=1e-6, cache_size=budget(40, N))
    # The first kernel has written its part of the rows when the second is interrupted.
    gram = solver.inner_products(X).gated([RBF(0.5), Callable(Interrupted(when))])
    with pytest.raises(KeyboardInterrupt):
        solver.solve(gram, problem)
    for start in range(0, N, 40):
        rows = np.arange(start, start + 40)
        np.testing.assert_allclose(gram.rows(rows), K[rows], atol=1e-12)
    again = solver.solve(gram, problem)
    fresh = solver.solve(solver.inner_products(X).gated([RBF(0.5)]), problem)
    np.testing.assert_allclose(again.coef, fresh.coef, atol=1e-5)


LONG_FIT = """
import logging, signal, sys, warnings
import numpy as np
from lokl import UniformMKLClassifier
from lokl.kernels import RBF

# A process started in the background may ignore it by default.
signal.signal(signal.SIGINT, signal.default_int_handler)

class Announce(logging.Handler):
    def emit(self, record):
        # The first rounds load compiled loops, and numba loses an interrupt while it loads one.
        if record.msg.startswith("round") and record.args[0] > 5:
            print("round", flush=True)

rng = np.random.RandomState(0)
X, y = rng.normal(size=(6000, 4)), rng.randint(0, 2, size=6000)
settings = {"C": 1e6, "tol": 1e-6, "cache_size": 64}
model = UniformMKLClassifier([RBF(0.01)], **settings)
warnings.simplefilter("ignore")
logging.getLogger("lokl").addHandler(Announce())
logging.getLogger("lokl").setLevel(logging.DEBUG)
try:
    model.fit(X, y)
except KeyboardInterrupt:
    logging.getLogger("lokl").setLevel(logging.WARNING)
    score = UniformMKLClassifier([RBF(1.0)]).fit(X[:100], X[:100, 0] > 0).score(X, X[:, 0] > 0)
    print("interrupted", score > 0.8, flush=True)
    sys.exit(0)
print("finished", flush=True)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="no SIGINT to one process")
def test_ctrl_c_ends_a_long_fit_and_the_process_stays_healthy(start_process):
    environment = {**os.environ, "PYTHONPATH": str(Path(lokl.__file__).parents[1])}
    process = start_process(
        [sys.executable, "-c", LONG_FIT],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )
    assert process.stdout.readline() == "round\n"
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=120)
    assert output.splitlines()[-1:] == ["interrupted True"], errors
    assert process.returncode == 0
