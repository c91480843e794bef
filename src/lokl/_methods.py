"""All methods and their capabilities: the one list that exports, documents, searches and tests use.

Plain data, so that ``import lokl`` stays light.
"""

from dataclasses import dataclass
from typing import Any, Literal

ABILITIES = {
    "regression": "also predicts numeric targets",
    "survival": "also predicts the risk of an event from censored times",
    "localized": "weights of the kernels differ between samples",
    "rounds": "an outer loop updates the weights; ``history_`` has one entry per round",
    "vote": "the model is a vote of SVMs, ``experts_``; otherwise one SVM on ``kernel_``",
    "own gate": "a training sample has other weights than a new sample with the same features",
    "scales alone": "with one kernel the model differs from a plain SVM",
    "ordered": "the model may depend on the order of the kernels",
    "fixed kernel": "the kernel does not depend on the targets; folds can share its Gram matrix",
    "squared loss": "its SVMs may have the squared loss, with exact leave-one-out decisions",
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
        Of its classes, ``stem + "Classifier"``, ``stem + "Regressor"`` and ``stem + "Survival"``.
    summary : str
        The learned quantity in a few words.
    abilities : str
        Keys of ``ABILITIES``, separated by commas.
    learns : {"weights", "nothing", "trust"}
        Learned in addition to the SVMs: weights of the kernels, nothing, or the probability that a
        view is informative for a sample.
    submodule : str, optional
        Module of ``lokl.methods`` that defines the classes, by default the stem in lower case.
    """

    name: str
    stem: str
    summary: str
    abilities: str
    learns: Literal["weights", "nothing", "trust"] = "weights"
    submodule: str = ""

    def can(self, ability: str) -> bool:
        """Return whether the method has an ability."""
        if ability not in ABILITIES:
            raise KeyError(f"unknown ability {ability!r}; known are {', '.join(ABILITIES)}")
        return ability in self.abilities.split(", ")

    @property
    def module(self) -> str:
        """Name of the module that defines the classes."""
        return f"lokl.methods.{self.submodule or self.stem.lower()}"

    @property
    def classifier(self) -> str:
        return f"{self.stem}Classifier"

    @property
    def regressor(self) -> str | None:
        return f"{self.stem}Regressor" if self.can("regression") else None

    @property
    def survival(self) -> str | None:
        return f"{self.stem}Survival" if self.can("survival") else None

    @property
    def classes(self) -> list[str]:
        """Names of the estimators."""
        return list(filter(None, [self.classifier, self.regressor, self.survival]))


def method_of(estimator: Any) -> Method | None:
    """Return the method that an estimator implements, None for subclasses and other estimators."""
    return method_of_class(type(estimator))


def method_of_class(kind: type) -> Method | None:
    """Return the method that a class implements, None for subclasses and other classes."""
    methods = (method for method in METHODS if kind.__name__ in method.classes)
    return next((method for method in methods if kind.__module__ == method.module), None)


METHODS: tuple[Method, ...] = (
    Method(
        "UNIFORM",
        "UniformMKL",
        "the average of the kernels",
        "regression, survival, squared loss, fixed kernel",
        learns="nothing",
    ),
    Method(
        "l_p-norm MKL",
        "LpMKL",
        "weights of bounded norm",
        "regression, survival, squared loss, rounds",
    ),
    Method(
        "SimpleMKL",
        "SimpleMKL",
        "weights that sum to one, few not zero",
        "regression, survival, squared loss, rounds",
    ),
    Method(
        "SPG-GMKL",
        "GMKL",
        "sums or products, any penalty",
        "regression, squared loss, rounds, scales alone",
    ),
    Method("EasyMKL", "EasyMKL", "weights from the distance of the classes", ""),
    Method("MWUMKL", "MWUMKL", "weights by multiplicative updates, in little memory", ""),
    Method(
        "LMKL",
        "LMKL",
        "a gate learned by gradient, together with the SVM",
        "regression, squared loss, localized, rounds, ordered",
    ),
    Method(
        "C-LMKL",
        "CLMKL",
        "weights for each cluster of samples, convex",
        "regression, squared loss, localized, rounds, scales alone",
    ),
    Method(
        "SwMKL",
        "SwMKL",
        "kernels weighted by their regressed success",
        "regression, squared loss, localized, single-kernel machines",
    ),
    Method("SAMKL", "SAMKL", "samples switch kernels on and off", "localized, rounds, own gate"),
    Method(
        "LD-MKL",
        "LDMKL",
        "one expert for each kernel, and a gated vote",
        "regression, survival, squared loss, localized, vote, single-kernel machines",
    ),
    Method(
        "GS-MKL",
        "GSMKL",
        "weights of the kernels for each group of samples",
        "regression, localized, rounds",
    ),
    Method(
        "PCK-LMKL",
        "PCKLMKL",
        "pairs count if class probabilities agree",
        "localized, rounds, own gate, scales alone",
    ),
    Method(
        "expert average",
        "ExpertAverage",
        "SVMs on each kernel alone, with costs of their own, averaged",
        "regression, survival, squared loss, vote, single-kernel machines",
        learns="nothing",
    ),
    Method(
        "trusted vote",
        "TrustedVote",
        "a vote of calibrated experts, each trusted on samples like its training samples",
        "regression, survival, squared loss, localized, vote, scales alone",
        learns="trust",
        submodule="trusted_vote.estimator",
    ),
)
