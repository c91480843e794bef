"""Settings and fixtures shared by all tests."""

import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis.internal.conjecture import providers
from scipy import sparse

# A check of a change must not depend on luck, a run at the desk should look for new cases.
STEADY = bool(os.environ.get("CI"))
# Compilation makes the first example slow, so no deadline.
settings.register_profile("lokl", deadline=None, max_examples=25, derandomize=STEADY)
settings.load_profile("lokl")
if STEADY:
    # Hypothesis also tries numbers that it finds in the sources of modules already imported. Which
    # these are depends on the tests that ran before in the same process, so on luck.
    providers._get_local_constants = lambda: providers._local_constants


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
    """Lock an array or CSR matrix, so that a test fails where the library writes into its input."""

    def lock(X: Any) -> Any:
        for part in (X.data, X.indices, X.indptr) if sparse.issparse(X) else (X,):
            part.setflags(write=False)
        return X

    return lock


@pytest.fixture
def start_process() -> Iterator[Callable[..., Any]]:
    """Start processes as `subprocess.Popen` does; all end with the test, also with a failed one."""
    with ExitStack() as stack:

        def start(arguments: Any, **settings: Any) -> Any:
            process = stack.enter_context(subprocess.Popen(arguments, **settings))
            # Called first on the way out: leaving a process waits for it and closes its pipes.
            stack.callback(process.kill)
            return process

        yield start
