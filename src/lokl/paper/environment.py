"""What results depend on beside their inputs: the machine and the versions."""

import os
import platform
import shlex
import sys
from pathlib import Path

from lokl._environment import system, versions


def environment() -> dict[str, object]:
    """Return machine, versions and command as plain values."""
    return {
        "command": shlex.join(["lokl", *sys.argv[1:]]),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "system": system(),
        **versions(),
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()
