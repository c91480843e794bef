"""All methods and what each can do: the one list that exports, documents and tests go through.

Plain data, so that ``import lokl`` stays light.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Method:
    """One published method.

    Attributes
    ----------
    name : str
        As tables and figures show it.
    stem : str
        Of its classes: ``stem + "Classifier"``, ``stem + "Regressor"``.
    summary : str
        What it does, in a few words.
    regression : bool
        Whether it also predicts numbers.
    localized : bool
        Whether trust in a kernel differs between samples; else one weight serves all of them.
    competes : bool
        Whether a sample's trust in all kernels sums to one.
    in_rounds : bool
        Whether an outer loop moves the gate: `max_iter` counts its rounds, `callback` sees each.
    certified : bool
        Whether ``duality_gap_`` bounds the distance from the optimum of the whole problem.
    one_kernel : bool
        Whether the model is one machine on one gated kernel, ``kernel_``; else it is a vote of
        experts, ``experts_``.
    """

    name: str
    stem: str
    summary: str
    regression: bool = True
    localized: bool = False
    competes: bool = False
    in_rounds: bool = False
    certified: bool = True
    one_kernel: bool = True

    @property
    def module(self) -> str:
        """Where the classes are defined."""
        return f"lokl.estimators.{self.stem.lower()}"

    @property
    def classifier(self) -> str:
        return f"{self.stem}Classifier"

    @property
    def regressor(self) -> str | None:
        return f"{self.stem}Regressor" if self.regression else None

    @property
    def classes(self) -> list[str]:
        """Names of the estimators."""
        return [self.classifier] + ([self.regressor] if self.regressor else [])


METHODS: tuple[Method, ...] = (
    Method(
        "UNIFORM",
        "UniformMKL",
        "the average of the kernels; with one kernel, the plain SVM",
        competes=True,
    ),
    Method("l_p MKL", "LpMKL", "weights of bounded norm, in closed form", in_rounds=True),
    Method(
        "SimpleMKL",
        "SimpleMKL",
        "weights that sum to one, few of them not zero",
        competes=True,
        in_rounds=True,
    ),
    Method("SPG-GMKL", "GMKL", "sums or products of kernels under any penalty", in_rounds=True),
    Method(
        "EasyMKL",
        "EasyMKL",
        "weights from the distance of the classes",
        regression=False,
        competes=True,
    ),
    Method(
        "MWUMKL",
        "MWUMKL",
        "weights by multiplicative updates, in little memory",
        regression=False,
        competes=True,
        in_rounds=True,
    ),
    Method(
        "LMKL",
        "LMKL",
        "a gate learned by gradient, together with the machine",
        localized=True,
        in_rounds=True,
        certified=False,
    ),
    Method("C-LMKL", "CLMKL", "weights for each cluster, convex", localized=True, in_rounds=True),
    Method(
        "SwMKL",
        "SwMKL",
        "kernels weighted by their regressed success",
        localized=True,
        competes=True,
    ),
    Method(
        "SAMKL",
        "SAMKL",
        "every sample switches kernels on and off",
        regression=False,
        localized=True,
        in_rounds=True,
        certified=False,
    ),
    Method(
        "LD-MKL",
        "LDMKL",
        "one expert for each kernel, and a gated vote",
        localized=True,
        competes=True,
        certified=False,
        one_kernel=False,
    ),
    Method(
        "GS-MKL",
        "GSMKL",
        "shares of the kernels for each group of samples",
        localized=True,
        competes=True,
        in_rounds=True,
        certified=False,
    ),
    Method(
        "PCK-LMKL",
        "PCKLMKL",
        "pairs count where class probabilities agree",
        regression=False,
        localized=True,
        in_rounds=True,
    ),
)
