"""Readings of the paper: what its unsaid settings are taken to be.

Methods and kernel dictionaries of the experiments, by the names that tables show.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lokl.kernels import RBF, Kernel, Linear, Polynomial, rbf_ladder


@dataclass(frozen=True)
class Reading:
    """The kernels, and the method that stands for each column of the paper's tables."""

    dictionary: str
    # Where the method has another name than the column.
    stands_for: Mapping[str, str]
    # The same for multiplicative weights.
    by_weights: Mapping[str, str] = field(default_factory=dict)
    # Further methods that tables show for a column; they are not counted.
    beside: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def method(self, column: str, solver: str) -> str:
        """Return the method that stands for a column."""
        own = {**self.stands_for, **(self.by_weights if solver == "mwu" else {})}
        return own.get(column, column)

    def methods(self, columns: Sequence[str], solver: str) -> list[str]:
        """Return all methods that are shown for columns; other names stand for themselves."""
        return [
            method
            for column in columns
            for method in (*self.beside.get(column, ()), self.method(column, solver))
        ]


READINGS = {
    # What most likely was done, found by a search: scikit-learn's defaults and nothing else.
    "paper": Reading(
        "linear, Gaussian, raw",
        {
            "SwMKL": "SwMKL, literal",
            "LD-MKL": "LD-MKL, literal",
            "UNIFORM": "UNIFORM, trace",
            "GMKL": "GMKL, simplex",
        },
        # Indefinite kernels have no class hulls, whose distance the weights could find.
        {"SwMKL": "SwMKL, repaired"},
        {"UNIFORM": ("UNIFORM",), "MWUMKL": ("MWUMKL, authors' constants",)},
    ),
    # What this library would do: normalised kernels, repaired methods.
    "lokl": Reading(
        "quadratic, Gaussian", {"UNIFORM": "UNIFORM, trace"}, beside={"UNIFORM": ("UNIFORM",)}
    ),
}
# Records made before there were several readings belong to this one.
FIRST_READING = "lokl"


# The paper states no dictionary. Figure 1 names quadratic and Gaussian kernels; its tables follow
# best from a linear and a Gaussian one as they are.
DICTIONARIES: Mapping[str, Callable[[float], list[Kernel]]] = {
    "quadratic, Gaussian": lambda gamma: [Polynomial(2), RBF(gamma)],
    "linear, quadratic, Gaussian": lambda gamma: [Linear(), Polynomial(2), RBF(gamma)],
    "nine Gaussians": lambda gamma: rbf_ladder(),
    "quadratic, Gaussian, raw": lambda gamma: [Polynomial(2), RBF(gamma)],
    "linear, Gaussian, raw": lambda gamma: [Linear(), RBF(gamma)],
}
GAMMAS = tuple(2.0**power for power in range(-4, 5))
# Dictionaries whose kernels are not normalised.
_RAW = ("quadratic, Gaussian, raw", "linear, Gaussian, raw")
# Dictionaries that contain all widths, so that none is chosen.
WITHOUT_GAMMA = ("nine Gaussians",)

# How kernels are normalised unless a dictionary is raw: LMKL's authors use a unit diagonal.
_USUAL = {"LMKL": "unit_diag"}
# Methods that are named after their normalisation have it with every dictionary.
_ALWAYS = {"UNIFORM, trace": "trace", "MWUMKL, authors' constants": "trace"}

# What scikit-learn's regressor does unless told otherwise: a Gaussian kernel of this width.
_PLAIN = {"success_kernel": RBF("auto")}
# Defaults of the public code of MWUMKL's authors.
_AUTHORS = {"C": 1000.0, "epsilon": 0.2, "rate": "faithful"}
# Class and settings of each method.
_MODELS: Mapping[str, tuple[str, dict[str, Any]]] = {
    "LMKL": ("LMKLClassifier", {}),
    "SwMKL": ("SwMKLClassifier", {}),
    "SwMKL, literal": ("SwMKLClassifier", {**_PLAIN, "psd": "none"}),
    "SwMKL, repaired": ("SwMKLClassifier", {**_PLAIN, "psd": "cosine"}),
    "LD-MKL": ("LDMKLClassifier", {}),
    "LD-MKL, literal": ("LDMKLClassifier", {**_PLAIN, "margin": 0.0, "gating": "none"}),
    "LD-MKL, margin 0": ("LDMKLClassifier", {"margin": 0.0}),
    "C-LMKL": ("CLMKLClassifier", {}),
    "C-LMKL, two clusters": ("CLMKLClassifier", {"n_clusters": 2}),
    "MWUMKL": ("MWUMKLClassifier", {}),
    "MWUMKL, authors' constants": ("MWUMKLClassifier", _AUTHORS),
    "UNIFORM": ("UniformMKLClassifier", {}),
    "UNIFORM, trace": ("UniformMKLClassifier", {}),
    "GMKL": ("GMKLClassifier", {}),
    "GMKL, simplex": ("GMKLClassifier", {"regularizer": "l1", "constraint": "simplex"}),
    # In no table of the paper: what this library would use.
    "trusted vote": ("TrustedVoteClassifier", {}),
}


def method_names() -> tuple[str, ...]:
    """All methods that an experiment can name."""
    return tuple(_MODELS)


def build(
    method: str, dictionary: str, gamma: float | None, C: float, solver: Any, seed: int
) -> Any:
    """Return an unfitted model."""
    import lokl

    usual = None if dictionary in _RAW else _USUAL.get(method, "mean_diag")
    how: Any = _ALWAYS.get(method, usual)
    kernels = DICTIONARIES[dictionary](gamma or 1.0)
    if how is not None:
        kernels = [kernel.normalized(how) for kernel in kernels]
    kind, settings = _MODELS[method]
    if kind != "MWUMKLClassifier":  # which is a solver itself
        settings = {"solver": solver, **settings}
    return getattr(lokl, kind)(kernels, **{"C": C, "random_state": seed, **settings})
