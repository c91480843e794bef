"""Reports of every kind, for all tests of the page.

``python tests/report/report_cases.py FOLDER`` writes them as pages to look at.
"""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np

from lokl.report import (
    Alignment,
    Candidate,
    Cases,
    Finding,
    Interval,
    Report,
    Source,
    Subset,
    Support,
    ViewWorth,
    write,
)


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


def like_a_study(n=150, n_views=3, n_classes=3, seed=0, missing=0.15, names=None, classes=None):
    """Answers as a good model gives them: mostly right, with views that are wrong at times."""
    rng = np.random.RandomState(seed)
    truth = np.sort(rng.choice(n_classes, size=n, p=_shares(n_classes)))[rng.permutation(n)]
    present = rng.uniform(size=(n, n_views)) > missing * np.arange(n_views) / max(n_views - 1, 1)
    present[:, 0] |= ~present.any(axis=1)
    good = np.linspace(0.93, 0.7, n_views)
    fooled = rng.uniform(size=(n, n_views)) > good
    says = np.where(fooled, rng.randint(n_classes, size=(n, n_views)), truth[:, np.newaxis])
    sure = np.clip(rng.beta(8, 2, size=(n, n_views)) - 0.25 * fooled, 1 / n_classes, 0.99)
    trust = np.clip(
        rng.beta(9, 2, size=(n, n_views)) - 0.5 * fooled * rng.uniform(0.6, 1.2, (n, n_views)),
        0.02,
        0.98,
    )
    votes = np.full((n, n_views, n_classes), 0.0)
    rows, columns = np.indices((n, n_views))
    votes[rows, columns, says] = 2.5 * trust * sure
    votes *= present[:, :, np.newaxis]
    prior = np.log(_shares(n_classes))
    decision = prior + votes.sum(axis=1)
    chances = np.exp(decision) / np.exp(decision).sum(axis=1, keepdims=True)
    ranked = np.argsort(decision, axis=1)
    first, second = ranked[:, -1], ranked[:, -2]
    own = np.arange(n)
    differ = np.array(
        [
            np.mean([a != b for a in s[p] for b in s[p]]) if p.sum() > 1 else 0
            for s, p in zip(says, present, strict=True)
        ]
    )
    place = np.column_stack(
        [np.cos(2 * np.pi * truth / n_classes), np.sin(2 * np.pi * truth / n_classes)]
    )
    place = place * (0.4 + chances.max(axis=1))[:, np.newaxis] + 0.22 * rng.normal(size=(n, 2))
    ids = [f"P{k:03d}" for k in range(n)]
    near = (
        [[int(j) for j in np.argsort(((place - p) ** 2).sum(axis=1))[1:4]] for p in place]
        if n <= 2000
        else [[(k + 1) % n, (k + 2) % n, (k + 3) % n] for k in range(n)]
    )
    found = Cases(
        ids, truth, first, chances, np.where(present, trust, 0.0), votes[own, :, first] - votes[own, :, second],
        prior[first] - prior[second], np.where(present, says, -1), np.where(present, sure, np.nan),
        np.clip(differ, 0, 1), present, place, near,
        Support(ids, truth, near, [[0.91, 0.84, 0.8][: len(own)] for own in near]), explained=0.46,
    )  # fmt: skip
    names = names or ["mrna", "mirna", "protein", "methylation", "clinical"][:n_views]
    classes = classes or (
        ["LumA", "Basal", "Her2"] if n_classes == 3 else [f"type {k}" for k in range(n_classes)]
    )
    return study(found, names, classes)


def _shares(n_classes):
    return np.arange(n_classes, 0, -1) / np.arange(n_classes, 0, -1).sum()


def study(found, names, classes):
    """The report of a comparison about these answers."""
    rng = np.random.RandomState(1)
    score = Interval(0.953, 0.921, 0.98)
    views = [
        ViewWorth(
            name, 200 - 30 * k, Interval(0.933 - 0.03 * k, 0.896 - 0.035 * k, 0.969 - 0.02 * k),
            Interval(0.031 - 0.016 * k, 0.004 - 0.02 * k, 0.058 - 0.01 * k), float(np.abs(found.parts[:, k]).mean()),
            float(found.trust[found.present[:, k], k].mean()), float(1 - found.present[:, k].mean()),
        )
        for k, name in enumerate(names)
    ]  # fmt: skip
    subsets = []
    for code in range(1, 2 ** len(names)):
        own = tuple(name for k, name in enumerate(names) if code >> k & 1)
        mean = 0.85 + 0.1 * len(own) / len(names) + 0.02 * rng.normal()
        subsets.append(Subset(own, Interval(mean, mean - 0.04, min(mean + 0.03, 1.0))))
    subsets.sort(key=lambda subset: -subset.score.mean)
    board = [
        Candidate(f"trusted vote, {len(names)} views", score, 2.1, 0.62, chosen=True, behind=Interval(0.0, 0.0, 0.0)),
        Candidate("uniform mix", Interval(0.947, 0.912, 0.976), 0.3, 0.71, behind=Interval(0.006, -0.012, 0.024)),
        Candidate(f"{names[0]} alone", Interval(0.933, 0.896, 0.969), 0.12, 0.55, behind=Interval(0.02, -0.008, 0.049)),
        Candidate("logistic regression", Interval(0.933, 0.893, 0.966), 0.05, baseline=True, behind=Interval(0.02, -0.004, 0.044)),
        Candidate("random forest", Interval(0.92, 0.876, 0.957), 1.4, baseline=True, behind=Interval(0.033, 0.006, 0.06)),
        Candidate("LMKL", None, 0.4, note="stopped after 60 s"),
        Candidate("majority class", Interval(0.5, 0.48, 0.52), 0.001, baseline=True, behind=Interval(0.453, 0.41, 0.49)),
    ]  # fmt: skip
    m = len(names)
    between = np.full((m, m), 0.35) + 0.65 * np.eye(m)
    return Report(
        title="Subtypes of breast tumours",
        verdict="",
        score_name="accuracy",
        classes=classes,
        views=views,
        leaderboard=board,
        findings=[Finding("LOKL003", f"The mix is not clearly better than {names[0]} alone: difference 2.0 points, interval −0.8 to 4.9.")],
        subsets=subsets if m <= 5 else [],
        cases=found,
        audit={
            "rows": f"{len(found.ids)} joined on patient", "duplicates across the split": "none", "folds": "5 folds x 2 repeats",
            "seed": 0, "versions": {"lokl": "0.1.0", "Python": "3.12.4", "numpy": "2.3.1"},
        },
        command="lokl compare mrna.csv mirna.csv protein.csv --on patient --target clinical.csv:subtype -o run",
        alignment=Alignment(between, np.linspace(0.5, 0.2, m)),
        sources=[Source(f"{name}.csv", 150, 200, 0.013, "3f79bb7b435b05321651daefd374cdc681dc06faa65e374e38337b88ca046dea"[:64]) for name in names],
    )  # fmt: skip


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
    from lokl.inspection import view_value
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
