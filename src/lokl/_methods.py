"""All methods and what each can do: the one list that exports, documents and tests go through.

Plain data, so that ``import lokl`` stays light.
"""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Method:
    """One published method.

    Attributes
    ----------
    name : str
        As tables and figures show it.
    stem : str
        Of its classes: ``stem + "Classifier"``, ``stem + "Regressor"``.
    summary : str
        What it learns, in a few words.
    regression : bool
        Whether it also predicts numbers.
    localized : bool
        Whether trust in a kernel differs between samples; else one weight serves all of them.
    competes : bool
        Whether a sample's trust in the kernels it can see sums to one.
    in_rounds : bool
        Whether an outer loop moves the gate, with an entry of ``history_`` for each of its rounds.
    one_kernel : bool
        Whether the model is one machine on one gated kernel, ``kernel_``; else it is a vote of
        experts, ``experts_``.
    same_gate : bool
        Whether a training sample has the gate that a new sample in its place would get.
    plain_alone : bool
        Whether with one kernel only it is the plain support vector machine.
    ordered : bool
        Whether another order of the kernels may give another model.
    """

    name: str
    stem: str
    summary: str
    regression: bool = True
    localized: bool = False
    competes: bool = False
    in_rounds: bool = False
    one_kernel: bool = True
    same_gate: bool = True
    plain_alone: bool = True
    ordered: bool = False

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
        name="UNIFORM",
        stem="UniformMKL",
        summary="the average of the kernels; with one kernel, the plain SVM",
        competes=True,
    ),
    Method(
        name="l_p-norm MKL",
        stem="LpMKL",
        summary="weights of bounded norm, in closed form",
        in_rounds=True,
    ),
    Method(
        name="SimpleMKL",
        stem="SimpleMKL",
        summary="weights that sum to one, few of them not zero",
        in_rounds=True,
    ),
    Method(
        name="SPG-GMKL",
        stem="GMKL",
        summary="sums or products of kernels under any penalty",
        in_rounds=True,
        plain_alone=False,
    ),
    Method(
        name="EasyMKL",
        stem="EasyMKL",
        summary="weights from the distance of the classes",
        regression=False,
    ),
    Method(
        name="MWUMKL",
        stem="MWUMKL",
        summary="weights by multiplicative updates, in little memory",
        regression=False,
    ),
    Method(
        name="LMKL",
        stem="LMKL",
        summary="a gate learned by gradient, together with the machine",
        localized=True,
        competes=True,
        in_rounds=True,
        ordered=True,
    ),
    Method(
        name="C-LMKL",
        stem="CLMKL",
        summary="weights for each cluster of samples, convex",
        localized=True,
        in_rounds=True,
        plain_alone=False,
    ),
    Method(
        name="SwMKL",
        stem="SwMKL",
        summary="kernels weighted by their regressed success",
        localized=True,
        competes=True,
    ),
    Method(
        name="SAMKL",
        stem="SAMKL",
        summary="every sample switches kernels on and off",
        regression=False,
        localized=True,
        in_rounds=True,
        same_gate=False,
    ),
    Method(
        name="LD-MKL",
        stem="LDMKL",
        summary="one expert for each kernel, and a gated vote",
        localized=True,
        competes=True,
        one_kernel=False,
    ),
    Method(
        name="GS-MKL",
        stem="GSMKL",
        summary="shares of the kernels for each group of samples",
        localized=True,
        competes=True,
        in_rounds=True,
    ),
    Method(
        name="PCK-LMKL",
        stem="PCKLMKL",
        summary="pairs count where class probabilities agree",
        regression=False,
        localized=True,
        in_rounds=True,
        same_gate=False,
        plain_alone=False,
    ),
)
