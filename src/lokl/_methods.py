"""All methods and their capabilities: the one list that exports, documents, searches and tests use.

Plain data, so that ``import lokl`` stays light.
"""

from dataclasses import dataclass
from typing import Any, Literal

ABILITIES = {
    "regression": "also predicts numeric targets",
    "localized": "weights of the kernels differ between samples",
    "rounds": "an outer loop updates the weights; ``history_`` has one entry per round",
    "vote": "the model is a vote of SVMs, ``experts_``; otherwise one SVM on ``kernel_``",
    "own gate": "a training sample has other weights than a new sample with the same features",
    "scales alone": "with one kernel the model differs from a plain SVM",
    "ordered": "the model may depend on the order of the kernels",
    "fixed kernel": "the kernel does not depend on the targets; folds can share its Gram matrix",
    "single-kernel machines": "trains SVMs on each kernel alone; candidates can share its matrix",
}


@dataclass(frozen=True)
class Method:
    """One published method.

    Attributes
    ----------
    name : str
        As tables and figures show it.
    stem : str
        Of its classes, ``stem + "Classifier"`` and ``stem + "Regressor"``.
    summary : str
        The learned quantity in a few words.
    learns : {"nothing", "weights", "trust"}
        Learned in addition to the SVMs: nothing, weights of the kernels, or the probability that a
        view is informative for a sample.
    abilities : frozenset of str
        Keys of ``ABILITIES``.
    module : str
        Module that defines the classes.
    """

    name: str
    stem: str
    summary: str
    learns: Literal["nothing", "weights", "trust"]
    abilities: frozenset[str]
    module: str

    def can(self, ability: str) -> bool:
        """Return whether the method has an ability."""
        if ability not in ABILITIES:
            raise KeyError(f"unknown ability {ability!r}; known are {', '.join(ABILITIES)}")
        return ability in self.abilities

    @property
    def classifier(self) -> str:
        return f"{self.stem}Classifier"

    @property
    def regressor(self) -> str | None:
        return f"{self.stem}Regressor" if self.can("regression") else None

    @property
    def classes(self) -> list[str]:
        """Names of the estimators."""
        return [self.classifier] + ([self.regressor] if self.regressor else [])


def method_of(estimator: Any) -> Method | None:
    """Return the method that an estimator implements, None for subclasses and other estimators."""
    kind = type(estimator)
    for method in METHODS:
        if kind.__name__ in method.classes and kind.__module__ == method.module:
            return method
    return None


def _method(
    name: str,
    stem: str,
    summary: str,
    abilities: str,
    *,
    learns: Literal["nothing", "weights", "trust"] = "weights",
    module: str | None = None,
) -> Method:
    names = frozenset(filter(None, abilities.split(", ")))
    return Method(name, stem, summary, learns, names, f"lokl.methods.{module or stem.lower()}")


METHODS: tuple[Method, ...] = (
    _method(
        "UNIFORM",
        "UniformMKL",
        "the average of the kernels",
        "regression, fixed kernel",
        learns="nothing",
    ),
    _method("l_p-norm MKL", "LpMKL", "weights of bounded norm", "regression, rounds"),
    _method(
        "SimpleMKL", "SimpleMKL", "weights that sum to one, few not zero", "regression, rounds"
    ),
    _method(
        "SPG-GMKL", "GMKL", "sums or products, any penalty", "regression, rounds, scales alone"
    ),
    _method("EasyMKL", "EasyMKL", "weights from the distance of the classes", ""),
    _method("MWUMKL", "MWUMKL", "weights by multiplicative updates, in little memory", ""),
    _method(
        "LMKL",
        "LMKL",
        "a gate learned by gradient, together with the SVM",
        "regression, localized, rounds, ordered",
    ),
    _method(
        "C-LMKL",
        "CLMKL",
        "weights for each cluster of samples, convex",
        "regression, localized, rounds, scales alone",
    ),
    _method(
        "SwMKL",
        "SwMKL",
        "kernels weighted by their regressed success",
        "regression, localized, single-kernel machines",
    ),
    _method("SAMKL", "SAMKL", "samples switch kernels on and off", "localized, rounds, own gate"),
    _method(
        "LD-MKL",
        "LDMKL",
        "one expert for each kernel, and a gated vote",
        "regression, localized, vote, single-kernel machines",
    ),
    _method(
        "GS-MKL",
        "GSMKL",
        "weights of the kernels for each group of samples",
        "regression, localized, rounds",
    ),
    _method(
        "PCK-LMKL",
        "PCKLMKL",
        "pairs count if class probabilities agree",
        "localized, rounds, own gate, scales alone",
    ),
    _method(
        "trusted vote",
        "TrustedVote",
        "a vote of calibrated experts, each trusted on samples like its training samples",
        "regression, localized, vote, scales alone",
        learns="trust",
        module="trusted_vote.estimator",
    ),
)
