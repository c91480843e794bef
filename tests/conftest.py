"""Settings and fixtures shared by all tests."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis.internal.conjecture import providers
from scipy import sparse

# ``make test`` draws the same cases on every machine. ``make fuzz`` sets this variable to look for
# new ones.
FUZZING = bool(os.environ.get("LOKL_FUZZ"))
# Compilation makes the first example slow, so there is no deadline. Failing examples are not kept
# between runs: they would make a run depend on earlier ones.
settings.register_profile(
    "lokl",
    deadline=None,
    max_examples=25,
    derandomize=not FUZZING,
    database=None,
    print_blob=True,
)
settings.load_profile("lokl")
# Hypothesis also tries constants that it finds in the sources of imported modules. Which modules
# are imported depends on the tests that ran before in the same process.
providers._get_local_constants = lambda: providers._local_constants


def pytest_configure() -> None:
    """Restore the default reaction to SIGINT.

    A shell starts background jobs with SIGINT ignored, and child processes inherit that. Tests of
    interruption need children that receive the signal.
    """
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def default_hangup() -> Iterator[None]:
    """Restore the default reaction to SIGHUP during a test, because `nohup` ignores it."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.fixture(autouse=True)
def close_figures() -> Iterator[None]:
    """Close the figures of a test: matplotlib warns if many are open."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


@pytest.fixture(scope="session")
def lokl_data() -> Path:
    """Folder of data sets named by LOKL_DATA; tests only read from it."""
    name = os.environ.get("LOKL_DATA")
    if not name:
        pytest.skip("LOKL_DATA is not set; it names a folder of data sets")
    folder = Path(name)
    if not folder.is_dir():
        pytest.skip(f"LOKL_DATA is {name!r}, which is not a folder")
    return folder


@pytest.fixture(scope="session")
def read_only() -> Callable[[Any], Any]:
    """Lock an array or CSR matrix, so that a test fails if the library writes into its input."""

    def lock(X: Any) -> Any:
        for part in (X.data, X.indices, X.indptr) if sparse.issparse(X) else (X,):
            part.setflags(write=False)
        return X

    return lock


@pytest.fixture
def start_process() -> Iterator[Callable[..., Any]]:
    """Start processes as `subprocess.Popen` does and end them with the test, even if it fails."""
    with ExitStack() as stack:

        def start(arguments: Any, **settings: Any) -> Any:
            process = stack.enter_context(subprocess.Popen(arguments, **settings))
            # Called first on the way out: leaving a process waits for it and closes its pipes.
            stack.callback(process.kill)
            return process

        yield start
