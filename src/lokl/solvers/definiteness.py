"""Kernels that are not positive semidefinite, and how solvers find out."""

from lokl._notices import tell

# Rounding makes curvatures of repeated samples negative by so much of the largest diagonal entry.
_SINGLE, _DOUBLE = 1e-3, 1e-6


def is_indefinite(curvature: float, scale: float, single: bool) -> bool:
    """Whether a pair was met that no positive semidefinite kernel has.

    Parameters
    ----------
    curvature : float
        The smallest ``K_ii + K_jj - 2 K_ij`` that was met.
    scale : float
        Size of the largest diagonal entry.
    single : bool
        Whether the entries of the matrix are in single precision.
    """
    return curvature < -(_SINGLE if single else _DOUBLE) * scale


def tell_of_indefinite_kernels() -> None:
    """Warn that a solution may not be the optimum."""
    tell(
        "indefinite",
        "the kernel is not positive semidefinite; the solution is a stationary point, "
        "not a certified optimum",
    )
