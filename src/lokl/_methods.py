"""All methods and what each can do: the one list that exports, documents and tests go through.

Plain data, so that ``import lokl`` stays light.
"""

from dataclasses import dataclass

ABILITIES = {
    "regression": "also predicts numbers",
    "localized": "trust in a kernel differs between samples; else one weight serves all of them",
    "rounds": "an outer loop moves the gate, with an entry of ``history_`` for each of its rounds",
    "vote": "the model is a vote, ``experts_``; else it is a machine on one kernel, ``kernel_``",
    "own gate": "a training sample has another gate than a new sample in its place would get",
    "scales alone": "with one kernel it is more than the plain support vector machine",
    "ordered": "another order of the kernels may give another model",
}


@dataclass(frozen=True)
class Method:
    """One published method."""

    name: str  # as tables and figures show it
    stem: str  # of its classes: stem + "Classifier", stem + "Regressor"
    summary: str  # what it learns, in a few words
    abilities: frozenset[str]  # of ABILITIES

    def can(self, ability: str) -> bool:
        """Whether the method has an ability."""
        if ability not in ABILITIES:
            raise KeyError(f"unknown ability {ability!r}; known are {', '.join(ABILITIES)}")
        return ability in self.abilities

    @property
    def module(self) -> str:
        """Where the classes are defined."""
        if self.stem == "TrustedVote":
            return "lokl.methods.trusted_vote.estimator"
        return f"lokl.methods.{self.stem.lower()}"

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


def _method(name: str, stem: str, summary: str, abilities: str) -> Method:
    return Method(name, stem, summary, frozenset(filter(None, abilities.split(", "))))


METHODS: tuple[Method, ...] = (
    _method("UNIFORM", "UniformMKL", "the average of the kernels", "regression"),
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
        "a gate learned by gradient, together with the machine",
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
        "regression, localized",
    ),
    _method("SAMKL", "SAMKL", "samples switch kernels on and off", "localized, rounds, own gate"),
    _method(
        "LD-MKL",
        "LDMKL",
        "one expert for each kernel, and a gated vote",
        "regression, localized, vote",
    ),
    _method(
        "GS-MKL",
        "GSMKL",
        "shares of the kernels for each group of samples",
        "regression, localized, rounds",
    ),
    _method(
        "PCK-LMKL",
        "PCKLMKL",
        "pairs count where class probabilities agree",
        "localized, rounds, own gate, scales alone",
    ),
    _method(
        "trusted vote",
        "TrustedVote",
        "a vote of calibrated experts, trusted where they know the sample",
        "regression, localized, vote, scales alone",
    ),
)
