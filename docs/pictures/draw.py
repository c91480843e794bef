"""Draw the picture of the first page: trust in views, and contributions to one prediction.

python docs/pictures/draw.py
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from lokl import TrustedVoteClassifier
from lokl.datasets import (
    corrupt_views,
    load,
)
from lokl.explain import (
    ContributionDisplay,
    TrustDisplay,
)
from lokl.kernels import (
    RBF,
    per_view,
)

FOLDER = Path(__file__).parent
# Few enough that single samples can be seen.
SHOWN = 120


def main() -> None:
    digits = load("digit_views")
    X, new, y, truth = train_test_split(digits.data, digits.target, train_size=600, random_state=0)
    damaged, wrong = corrupt_views(new, truth, digits.views, share=0.4, random_state=0)
    scaler = StandardScaler().fit(X)
    model = TrustedVoteClassifier(per_view(RBF(), digits.views), C=10, random_state=0)
    model.fit(scaler.transform(X), y)
    Z = scaler.transform(damaged[:SHOWN])
    figure, (left, right) = plt.subplots(
        1, 2, figsize=(10, 4.2), width_ratios=(1.1, 1), constrained_layout=True
    )
    TrustDisplay.from_estimator(model, Z, truth[:SHOWN], marked=wrong[:SHOWN], ax=left)
    left.set_title("trust in four views of digits; dots: views of another digit", fontsize=10)
    # The sample whose views contradict each other most, among those that were decided rightly.
    right_ones = model.predict(Z) == truth[:SHOWN]
    number = int(np.argmax(np.where(right_ones, model.disagreement(Z), 0.0)))
    ContributionDisplay.from_estimator(model, Z, sample=number, ax=right)
    right.title.set_fontsize(10)
    figure.savefig(FOLDER / "trust.png", dpi=110)


if __name__ == "__main__":
    main()
