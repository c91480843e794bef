"""Loops are compiled once per installation, when they are needed, and this is logged."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import lokl
from lokl._compiled import FIRST_USE, compilation_message

SUBTRACT = """
import numpy as np
from lokl._compiled import CompiledModule
rows = CompiledModule("lokl.gram._mixing")
for dtype in ("float32", "float64", "float32"):
    rows.subtract_rows(0, 3, np.ones((2, 3), dtype), np.arange(2), np.ones(2), np.zeros(3))
"""
FITS = """
import numpy as np
from scipy import sparse
from lokl import LMKLClassifier, UniformMKLClassifier, UniformMKLRegressor
from lokl.gram import _mixing
from lokl.kernels import RBF, Linear, Polynomial
from lokl.solvers import _smo

X = np.random.RandomState(0).normal(size=(2500, 20))
y = (X[:, 0] * X[:, 1] > 0).astype(int)
kernels = [Linear(), Polynomial(2), RBF(), RBF(0.5)]
UniformMKLClassifier(kernels).fit(X[:100], y[:100]).predict(X)
UniformMKLClassifier([RBF()]).fit(X, y).contributions(X[:10])
UniformMKLClassifier(kernels).fit(X, y)
UniformMKLRegressor([RBF()]).fit(X, X[:, 0])
UniformMKLClassifier([RBF()]).fit(sparse.csr_matrix(X * (X > 1)), y)
LMKLClassifier(kernels, max_iter=2).fit(X[:100], y[:100])
for module in (_mixing, _smo):
    for name, loop in vars(module).items():
        # Functions inside of loops are compiled with them, and only in the process that does so.
        if name.startswith("_"):
            continue
        # Loops in single precision also take some arrays in double precision.
        variants = [str(signature) for signature in getattr(loop, "signatures", [])]
        single = [variant for variant in variants if "float32" in variant]
        # Pair moves need a gradient in double precision if kernel values are large.
        most = 2 if name == "smo" else 1
        assert len(single) <= most and len(variants) - len(single) <= 1, (name, variants)
"""
FIRST_SEARCH = """
import numpy as np
from lokl import UniformMKLClassifier
from lokl.kernels import RBF
from lokl.search import KernelSearchCV

X = np.random.RandomState(0).normal(size=(1200, 10))
y = (X[:, 0] + X[:, 1] ** 2 > 1).astype(int)
grid = {"C": [0.1, 1.0], "kernels": [[RBF(gamma)] for gamma in (0.01, 0.03, 0.1, "scale")]}
KernelSearchCV(UniformMKLClassifier(cache_size=20), grid, refit=False, n_jobs=2).fit(X, y)
"""


def run(code, **environment):
    source = str(Path(lokl.__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": source, **environment},
        check=False,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    return done.stderr.splitlines()


@pytest.mark.slow
def test_the_first_process_logs_what_it_compiles_and_the_second_compiles_nothing(tmp_path):
    first = run(SUBTRACT, NUMBA_CACHE_DIR=str(tmp_path))
    assert first[0] == FIRST_USE
    assert [line.split(": ")[1] for line in first[1:]] == [
        "gradients (single precision)",
        "gradients (double precision)",
    ]
    assert run(SUBTRACT, NUMBA_CACHE_DIR=str(tmp_path)) == []


@pytest.mark.slow
def test_every_loop_is_compiled_once_for_each_precision():
    # Other layouts, read-only arrays and other integers would each be compiled again.
    run(FITS)


@pytest.mark.slow
@pytest.mark.parametrize("attempt", range(4))
def test_threads_of_a_new_process_load_loops_at_the_same_time(attempt):
    # Threads that import numba together wait for each other forever in about half of the attempts.
    run(FIRST_SEARCH)


def test_purposes_name_loops_in_lines_that_fit_a_terminal():
    from lokl.gram import _mixing
    from lokl.solvers import _mwu, _smo

    for module in (_mixing, _mwu, _smo):
        for name in module.PURPOSES:
            assert hasattr(getattr(module, name), "signatures")
            assert len(compilation_message(module, name, "double")) < 80
        assert compilation_message(module, "no loop", "double") is None
    assert len(FIRST_USE) < 80
