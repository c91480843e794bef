"""Methods and kernel dictionaries of the experiments, and readings of the paper.

A reading is a set of assumptions about settings that the paper does not state.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lokl.kernels import RBF, Kernel, Linear, Polynomial, rbf_ladder


@dataclass(frozen=True)
class Reading:
    """Kernels, and the method that stands for each column of the paper's tables.

    Attributes
    ----------
    dictionary : str
        Name of a set of kernels.
    stands_for : mapping of str to str
        Methods whose name differs from the column.
    with_mwu : mapping of str to str
        The same for the solver with multiplicative weights.
    variants : mapping of str to tuple of str
        Further methods that tables show for a column without counting them.
    """

    dictionary: str
    stands_for: Mapping[str, str]
    with_mwu: Mapping[str, str] = field(default_factory=dict)
    variants: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def method(self, column: str, solver: str) -> str:
        """Return the method that stands for a column."""
        names = {**self.stands_for, **(self.with_mwu if solver == "mwu" else {})}
        return names.get(column, column)

    def methods(self, columns: Sequence[str], solver: str) -> list[str]:
        """Return all methods that are shown for columns; names of methods stand for themselves."""
        return [
            method
            for column in columns
            for method in (*self.variants.get(column, ()), self.method(column, solver))
        ]


READINGS = {
    # The most likely one, found by a search: scikit-learn's defaults and nothing else.
    "paper": Reading(
        "linear, Gaussian, raw",
        {
            "SwMKL": "SwMKL, literal",
            "LD-MKL": "LD-MKL, literal",
            "UNIFORM": "UNIFORM, trace",
            "GMKL": "GMKL, simplex",
        },
        # With indefinite kernels there are no class hulls whose distance the weights could find.
        {"SwMKL": "SwMKL, repaired"},
        {"UNIFORM": ("UNIFORM",), "MWUMKL": ("MWUMKL, authors' constants",)},
    ),
    # The choices of this library: normalised kernels, repaired methods.
    "lokl": Reading(
        "quadratic, Gaussian", {"UNIFORM": "UNIFORM, trace"}, variants={"UNIFORM": ("UNIFORM",)}
    ),
}

# The paper states no dictionary. Figure 1 names quadratic and Gaussian kernels; the tables agree
# best with a linear and a Gaussian kernel without normalisation.
DICTIONARIES: Mapping[str, Callable[[float], list[Kernel]]] = {
    "quadratic, Gaussian": lambda gamma: [Polynomial(2), RBF(gamma)],
    "linear, quadratic, Gaussian": lambda gamma: [Linear(), Polynomial(2), RBF(gamma)],
    "nine Gaussians": lambda gamma: rbf_ladder(),
    "quadratic, Gaussian, raw": lambda gamma: [Polynomial(2), RBF(gamma)],
    "linear, Gaussian, raw": lambda gamma: [Linear(), RBF(gamma)],
}
GAMMAS = tuple(2.0**power for power in range(-4, 5))
# Dictionaries with kernels as they are, without normalisation.
_RAW = ("quadratic, Gaussian, raw", "linear, Gaussian, raw")
# Dictionaries with all widths, so that none is chosen.
WITHOUT_GAMMA = ("nine Gaussians",)

# How kernels are normalised unless a dictionary is raw: LMKL's authors use a unit diagonal.
_USUAL = {"LMKL": "unit_diag"}
# Methods named after their normalisation have it with every dictionary.
_ALWAYS = {"UNIFORM, trace": "trace", "MWUMKL, authors' constants": "trace"}

# Default of scikit-learn's regressor: a Gaussian kernel of this width.
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
    # Not in the tables of the paper: the method that this library recommends.
    "trusted vote": ("TrustedVoteClassifier", {}),
}


METHOD_NAMES = tuple(_MODELS)


def build(
    method: str, dictionary: str, gamma: float | None, C: float, solver: Any, seed: int
) -> Any:
    """Return an unfitted model.

    Parameters
    ----------
    method : str
        One of ``METHOD_NAMES``.
    dictionary : str
        One of ``DICTIONARIES``.
    gamma : float or None
        Width of the Gaussian kernel; None if the dictionary has no width to choose.
    C : float
    solver : str
    seed : int

    Returns
    -------
    model : classifier
    """
    import lokl

    usual = None if dictionary in _RAW else _USUAL.get(method, "mean_diag")
    how: Any = _ALWAYS.get(method, usual)
    kernels = DICTIONARIES[dictionary](gamma or 1.0)
    if how is not None:
        kernels = [kernel.normalized(how) for kernel in kernels]
    kind, settings = _MODELS[method]
    if kind != "MWUMKLClassifier":  # is a solver itself
        settings = {"solver": solver, **settings}
    return getattr(lokl, kind)(kernels, **{"C": C, "random_state": seed, **settings})
