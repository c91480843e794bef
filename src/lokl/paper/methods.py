"""Methods and kernel dictionaries of the experiments, by the names that tables show."""

from collections.abc import Callable, Mapping
from typing import Any

from lokl.kernels import RBF, Kernel, Linear, Polynomial, rbf_ladder

Builder = Callable[[list[Kernel], float, Any, int], Any]

# The paper states no dictionary; Figure 1 names the first one.
DICTIONARIES: Mapping[str, Callable[[float], list[Kernel]]] = {
    "quadratic, Gaussian": lambda gamma: [Polynomial(2), RBF(gamma)],
    "linear, quadratic, Gaussian": lambda gamma: [Linear(), Polynomial(2), RBF(gamma)],
    "nine Gaussians": lambda gamma: rbf_ladder(),
    "quadratic, Gaussian, raw": lambda gamma: [Polynomial(2), RBF(gamma)],
}
GAMMAS = tuple(2.0**power for power in range(-4, 5))
# Dictionaries whose kernels are not normalised.
_RAW = ("quadratic, Gaussian, raw",)
# Dictionaries that contain all widths, so that none is chosen.
WITHOUT_GAMMA = ("nine Gaussians",)

# How kernels are normalised unless a dictionary is raw: LMKL's authors use a unit diagonal.
_USUAL = {"LMKL": "unit_diag"}
# Methods that are named after their normalisation have it with every dictionary.
_ALWAYS = {"UNIFORM, trace": "trace"}


def _models() -> dict[str, Builder]:
    import lokl

    def simple(kind: Any, **settings: Any) -> Builder:
        def build(kernels: list[Kernel], C: float, solver: Any, seed: int) -> Any:
            return kind(kernels, C, solver=solver, random_state=seed, **settings)

        return build

    return {
        "LMKL": simple(lokl.LMKLClassifier),
        "SwMKL": simple(lokl.SwMKLClassifier),
        "LD-MKL": simple(lokl.LDMKLClassifier),
        "LD-MKL, margin 0": simple(lokl.LDMKLClassifier, margin=0.0),
        "C-LMKL": simple(lokl.CLMKLClassifier),
        "C-LMKL, two clusters": simple(lokl.CLMKLClassifier, n_clusters=2),
        "MWUMKL": lambda kernels, C, solver, seed: lokl.MWUMKLClassifier(
            kernels, C, random_state=seed
        ),
        "UNIFORM": simple(lokl.UniformMKLClassifier),
        "UNIFORM, trace": simple(lokl.UniformMKLClassifier),
        "GMKL": simple(lokl.GMKLClassifier),
    }


def method_names() -> tuple[str, ...]:
    """All methods that an experiment can name."""
    return tuple(_models())


def build(
    method: str, dictionary: str, gamma: float | None, C: float, solver: Any, seed: int
) -> Any:
    """Return an unfitted model."""
    usual = None if dictionary in _RAW else _USUAL.get(method, "mean_diag")
    how: Any = _ALWAYS.get(method, usual)
    kernels = DICTIONARIES[dictionary](gamma or 1.0)
    if how is not None:
        kernels = [kernel.normalized(how) for kernel in kernels]
    return _models()[method](kernels, C, solver, seed)
