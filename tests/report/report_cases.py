"""Reports of every kind, for all tests of the page.

``python tests/report/report_cases.py FOLDER`` writes them as pages to look at.
"""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
from study_cases import like_a_study

from lokl.explain import Explanation
from lokl.report import (
    Finding,
    Interval,
    LeaderboardEntry,
    Report,
    SampleMap,
    ViewSubset,
    ViewSummary,
    write,
)


def explanation(n=60, n_views=3, n_classes=3, seed=0, names="P{:03d}"):
    """Random predictions, for laws that hold for any."""
    rng = np.random.RandomState(seed)
    chances = rng.dirichlet(np.full(n_classes, 0.3), size=n)
    present = rng.uniform(size=(n, n_views)) > 0.1
    present[:, 0] = True
    classes = np.array([f"class {k}" for k in range(n_classes)], dtype=object)
    second, first = np.argsort(chances, axis=1)[:, -2:].T
    alone = classes[rng.randint(n_classes, size=(n, n_views))]
    alone[~present] = None
    return Explanation(
        ids=[names.format(k) for k in range(n)],
        views=[f"view {k}" for k in range(n_views)],
        classes=classes,
        truth=classes[rng.randint(n_classes, size=n)],
        predictions=classes[first],
        runner_up=classes[second],
        probabilities=chances,
        trust=np.where(present, rng.uniform(size=(n, n_views)), 0.0),
        contributions=rng.normal(size=(n, n_views)),
        base_values=rng.normal(size=n),
        alone=alone,
        alone_probabilities=rng.uniform(size=(n, n_views)),
        disagreement=rng.uniform(size=n),
        presence=present,
    )


def random_map(n, seed=0):
    rng = np.random.RandomState(seed)
    near = [[int(k) for k in rng.choice(n, min(3, n), replace=False)] for _ in range(n)]
    return SampleMap(rng.normal(size=(n, 2)), near)


def report(found=None, words="mrna", classes=None):
    found = explanation() if found is None else found
    names = [f"{words} {k}" for k in range(len(found.views))]
    score = Interval(0.95, 0.91, 0.98)
    return Report(
        title=f"Subtypes by {words}",
        verdict="The vote reaches 95.0 % (91.0 to 98.0). A forest reaches 92.0 %.",
        score_name="accuracy",
        classes=found.classes.tolist() if classes is None else classes,
        views=[ViewSummary(name, 20, score, Interval(0.01, -0.01, 0.03), 0.1) for name in names],
        leaderboard=[
            LeaderboardEntry("trusted vote", score, 2.1, 0.5, chosen=True),
            LeaderboardEntry("uniform mix", Interval(0.93, 0.9, 0.96), 0.3, 0.6),
            LeaderboardEntry("forest", Interval(0.92, 0.88, 0.95), 12.0, baseline=True),
            LeaderboardEntry("broken", None, 0.1, note=f"ValueError: {words}"),
        ],
        findings=[Finding("LOKL003", f"the mix is not clearly better than {words} alone")],
        subsets=[ViewSubset((names[0], names[-1]), score)],
        explanation=found,
        sample_map=random_map(len(found)),
        audit={"rows": "60", "words": words},
        command=f"lokl compare {words}.csv",
    )


def regression(n=200):
    """The report about a fitted regressor."""
    from sklearn.datasets import load_diabetes
    from sklearn.preprocessing import scale

    from lokl import TrustedVoteRegressor
    from lokl.kernels import RBF, per_view
    from lokl.report import report_from_model

    X, y = load_diabetes(return_X_y=True)
    X = scale(X)
    X[::7, 4:] = np.nan
    kernels = per_view(RBF(), {"body": slice(0, 4), "blood serum": slice(4, 10)})
    model = TrustedVoteRegressor(kernels, C=50, random_state=0).fit(X[n:], y[n:])
    ids = [f"patient {k}" for k in range(len(y))]
    return report_from_model(
        model,
        X[:n],
        y[:n],
        ids=ids[:n],
        training=(X[n:], y[n:], ids[n:]),
        title="Progression of diabetes",
    )


def fitted(n=150):
    """The report about a fitted classifier, with what its views are worth."""
    from sklearn.datasets import load_wine
    from sklearn.preprocessing import scale

    from lokl import TrustedVoteClassifier
    from lokl.explain import view_value
    from lokl.kernels import RBF, per_view
    from lokl.report import report_from_model

    X, y = load_wine(return_X_y=True)
    X, y = scale(X), np.array(["Barolo", "Grignolino", "Barbera"])[y]
    X[::9, 5:9] = np.nan
    kernels = per_view(
        RBF(), {"acids": slice(0, 5), "phenols": slice(5, 9), "colour": slice(9, 13)}
    )
    model = TrustedVoteClassifier(kernels, C=10, random_state=0).fit(X[::2], y[::2])
    value = view_value(model, X[::2], y[::2])
    return report_from_model(
        model,
        X[1::2],
        y[1::2],
        training=(X[::2], y[::2]),
        value=value,
        title="Wines by laboratory",
        columns=True,
    )


def without_truth(found):
    plain = replace(found.explanation, truth=None)
    return replace(found, explanation=plain, leaderboard=[], verdict="")


def with_sets(found):
    """Sets of all classes that are not improbable."""
    own = found.explanation
    plain = replace(own, sets=own.probabilities > 0.05, coverage=0.9)
    return replace(found, explanation=plain)


def with_equal_weights(found):
    """A model with the same weights for all samples, and without probabilities."""
    own = found.explanation
    plain = replace(
        own,
        trust=None,
        weights=own.presence / own.presence.sum(axis=1, keepdims=True),
        alone_probabilities=np.full(own.presence.shape, np.nan),
        probabilities=None,
        disagreement=np.full(len(own), np.nan),
    )
    return replace(
        found,
        explanation=plain,
        sample_map=replace(found.sample_map, support=None, explained=None),
    )


def examples():
    """Every kind of report by its name; makers, since some of them are dear."""
    awkward = [
        "<script>alert('x')</script> \"quoted\" & long enough to need several lines",
        "Ωμέγα-3 脂肪酸 🧬",
        "a" * 60,
    ]
    many = [f"a class with a rather long name {k}" for k in range(12)]
    return {
        "study": like_a_study,
        "two-classes": lambda: like_a_study(200, 2, 2, 3, classes=["healthy", "ill"]),
        "five-views": lambda: like_a_study(500, 5, 4, 4),
        "twelve-classes": lambda: like_a_study(600, 4, 12, 5, classes=many),
        "ten-thousand": lambda: like_a_study(10_000, 5, 10, 6),
        "one-view": lambda: like_a_study(80, 1, 3, 7),
        "ten-views": lambda: like_a_study(
            120, 10, 3, 8, names=[f"platform {k}" for k in range(10)]
        ),
        "awkward-names": lambda: like_a_study(60, 3, 3, 9, names=awkward, classes=awkward[::-1]),
        "no-truth": lambda: without_truth(like_a_study()),
        "no-trust": lambda: with_equal_weights(like_a_study()),
        "sets": lambda: with_sets(like_a_study()),
        "one-model": lambda: replace(like_a_study(), leaderboard=[], subsets=[], findings=[]),
        "one-sample": lambda: replace(like_a_study(1, 3, 3, 2), leaderboard=[]),
        "only-a-comparison": lambda: replace(
            like_a_study(), explanation=None, sample_map=None, alignment=None
        ),
        "regression": regression,
        "fitted": fitted,
    }


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    for name, maker in examples().items():
        if len(sys.argv) == 2 or name in sys.argv[2:]:
            print(write(maker(), folder / f"{name}.html"))  # noqa: T201
