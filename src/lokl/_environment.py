"""The machine and the versions that results depend on."""

import platform
from importlib.metadata import PackageNotFoundError, version

_PACKAGES = ("lokl", "numpy", "scipy", "scikit-learn", "numba", "joblib")


def versions() -> dict[str, str | None]:
    """Return the versions of Python and of the packages that compute; None for those not here."""
    return {"python": platform.python_version(), **{name: _version(name) for name in _PACKAGES}}


def system() -> str:
    """Return the operating system and the kind of processor."""
    return f"{platform.system()} {platform.machine()}"


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
