"""Look for new random cases that fail, for a limited time.

Runs all tests that draw random cases again and again, each time with another seed. ``make test``
always draws the same cases; this script looks beyond them and prints how to repeat a failure.

    python tests/fuzz.py --minutes 10 [--seed N] [--once] [pytest arguments]
"""

import argparse
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
# The seed, and with it the cases, is different on every call unless one is given.
LARGEST_SEED = 10**6


def run(seed, seconds, arguments):
    """Run the random tests with one seed.

    Returns
    -------
    code : int or None
        Exit code of pytest, None if the time was up before the end.
    failed : list of str
        Tests that failed so far.
    """
    command = [sys.executable, "-m", "pytest", "-m", "hypothesis or fuzz", "-q", "--tb=short"]
    command += [f"--hypothesis-seed={seed}", "-n", "2", "-p", "no:cacheprovider", *arguments]
    environment = {**os.environ, "LOKL_FUZZ": "1", "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(
        command,
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        output, code = process.communicate(timeout=seconds)[0], process.returncode
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGINT)
        try:
            output = process.communicate(timeout=60)[0]
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            output = process.communicate()[0]
        code = None
    failed = re.findall(r"^(?:FAILED|ERROR) (\S+)", output, flags=re.MULTILINE)
    if failed or code not in (0, None):
        print(output)
    return code, failed


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=time.time_ns() % LARGEST_SEED)
    parser.add_argument("--once", action="store_true", help="run this seed only, to its end")
    options, arguments = parser.parse_known_args()
    end = time.monotonic() + 60 * options.minutes
    seed, bad = options.seed, {}
    while True:
        left = None if options.once else end - time.monotonic()
        if left is not None and left <= 0:
            break
        code, failed = run(seed, left, arguments)
        state = "time is up" if code is None else "done"
        print(f"seed {seed}: {len(failed)} failed, {state}", flush=True)
        for name in failed:
            bad.setdefault(name, seed)
        if code not in (0, None) and not failed:
            return code
        seed += 1
        if options.once:
            break
    for name, first in bad.items():
        print(f"repeat: make fuzz ARGS='--seed {first} --once {name}'")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
