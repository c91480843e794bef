"""Everything chosen for the user: scaling, kernels, costs and the method."""

from typing import TYPE_CHECKING

from lokl._exports import lazy_exports

if TYPE_CHECKING:
    from lokl.auto.classifier import AutoMKLClassifier as AutoMKLClassifier
    from lokl.auto.leaderboard import LeaderboardRow as LeaderboardRow
    from lokl.auto.preparation import PrepareColumns as PrepareColumns
    from lokl.auto.reading import ReadColumns as ReadColumns
    from lokl.auto.regressor import AutoMKLRegressor as AutoMKLRegressor

__getattr__, __all__ = lazy_exports(
    __name__,
    {
        "AutoMKLClassifier": "lokl.auto.classifier",
        "AutoMKLRegressor": "lokl.auto.regressor",
        "LeaderboardRow": "lokl.auto.leaderboard",
        "PrepareColumns": "lokl.auto.preparation",
        "ReadColumns": "lokl.auto.reading",
    },
)
