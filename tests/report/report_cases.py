"""Reports of every kind, for all tests of the page.

``python tests/report/report_cases.py FOLDER`` writes them as pages to look at.
"""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
from study_cases import like_a_study

from lokl.report import Candidate, Cases, Finding, Interval, Report, Subset, ViewWorth, write


def cases(n=60, n_views=3, n_classes=3, seed=0, names="P{:03d}"):
    """Answers without rhyme or reason, for laws that hold of any."""
    rng = np.random.RandomState(seed)
    chances = rng.dirichlet(np.full(n_classes, 0.3), size=n)
    present = rng.uniform(size=(n, n_views)) > 0.1
    present[:, 0] = True
    return Cases(
        ids=[names.format(k) for k in range(n)],
        truth=rng.randint(n_classes, size=n),
        predicted=chances.argmax(axis=1),
        probabilities=chances,
        trust=np.where(present, rng.uniform(size=(n, n_views)), 0.0),
        parts=rng.normal(size=(n, n_views)),
        start=rng.normal(size=n),
        says=np.where(present, rng.randint(n_classes, size=(n, n_views)), -1),
        sure=rng.uniform(size=(n, n_views)),
        disagreement=rng.uniform(size=n),
        present=present,
        place=rng.normal(size=(n, 2)),
        near=[[int(k) for k in rng.choice(n, min(3, n), replace=False)] for _ in range(n)],
    )


def report(found=None, words="mrna", classes=None):
    found = cases() if found is None else found
    n_views = found.trust.shape[1]
    names = [f"{words} {k}" for k in range(n_views)]
    score = Interval(0.95, 0.91, 0.98)
    views = [
        ViewWorth(name, 20, score, Interval(0.01, -0.01, 0.03), 0.5, 0.8, 0.1) for name in names
    ]
    n_classes = 3 if found.probabilities is None else found.probabilities.shape[1]
    return Report(
        title=f"Subtypes by {words}",
        verdict="The vote reaches 95.0 % (91.0 to 98.0). A forest reaches 92.0 %.",
        score_name="accuracy",
        classes=[f"class {k}" for k in range(n_classes)] if classes is None else classes,
        views=views,
        leaderboard=[
            Candidate("trusted vote", score, 2.1, 0.5, chosen=True),
            Candidate("uniform mix", Interval(0.93, 0.9, 0.96), 0.3, 0.6),
            Candidate("forest", Interval(0.92, 0.88, 0.95), 12.0, baseline=True),
            Candidate("broken", None, 0.1, note=f"ValueError: {words}"),
        ],
        findings=[Finding("LOKL003", f"the mix is not clearly better than {words} alone")],
        subsets=[Subset((names[0], names[-1]), score)],
        cases=found,
        audit={"rows": "60", "words": words},
        command=f"lokl compare {words}.csv",
    )


def regression(n=200):
    """The report about a fitted regressor."""
    from sklearn.datasets import load_diabetes
    from sklearn.preprocessing import scale

    from lokl import TrustedVoteRegressor
    from lokl.kernels import RBF, per_view
    from lokl.report import about

    X, y = load_diabetes(return_X_y=True)
    X = scale(X)
    X[::7, 4:] = np.nan
    kernels = per_view(RBF(), {"body": slice(0, 4), "blood serum": slice(4, 10)})
    model = TrustedVoteRegressor(kernels, C=50, random_state=0).fit(X[n:], y[n:])
    ids = [f"patient {k}" for k in range(len(y))]
    return about(
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
    from lokl.report import about

    X, y = load_wine(return_X_y=True)
    X, y = scale(X), np.array(["Barolo", "Grignolino", "Barbera"])[y]
    X[::9, 5:9] = np.nan
    kernels = per_view(
        RBF(), {"acids": slice(0, 5), "phenols": slice(5, 9), "colour": slice(9, 13)}
    )
    model = TrustedVoteClassifier(kernels, C=10, random_state=0).fit(X[::2], y[::2])
    value = view_value(model, X[::2], y[::2])
    return about(
        model, X[1::2], y[1::2], training=(X[::2], y[::2]), value=value, title="Wines by laboratory"
    )


def without_truth(found):
    return replace(
        found,
        cases=replace(found.cases, truth=np.full(len(found.cases.ids), -1)),
        leaderboard=[],
        verdict="",
    )


def without_trust_and_chances(found):
    cases = found.cases
    blank = np.full(cases.trust.shape, np.nan)
    told = replace(
        cases,
        trust=blank,
        sure=blank,
        probabilities=None,
        disagreement=np.full(len(cases.ids), np.nan),
        support=None,
        explained=None,
    )
    return replace(found, cases=told)


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
        "no-trust": lambda: without_trust_and_chances(like_a_study()),
        "one-model": lambda: replace(like_a_study(), leaderboard=[], subsets=[], findings=[]),
        "one-sample": lambda: replace(like_a_study(1, 3, 3, 2), leaderboard=[]),
        "only-a-comparison": lambda: replace(like_a_study(), cases=None, alignment=None),
        "regression": regression,
        "fitted": fitted,
    }


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    for name, maker in examples().items():
        if len(sys.argv) == 2 or name in sys.argv[2:]:
            print(write(maker(), folder / f"{name}.html"))  # noqa: T201
