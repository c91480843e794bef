"""A report as a study would have it: a model that is mostly right, and views that err at times."""

import numpy as np

from lokl.explain import Explanation
from lokl.report import (
    Finding,
    Interval,
    KernelAlignment,
    LeaderboardEntry,
    Report,
    SampleMap,
    SourceFile,
    SupportSamples,
    ViewSubset,
    ViewSummary,
)

NAMES = ["mrna", "mirna", "protein", "methylation", "clinical"]


def like_a_study(n=150, n_views=3, n_classes=3, seed=0, missing=0.15, names=None, classes=None):
    """The report of a comparison about made-up patients."""
    classes = classes or ["LumA", "Basal", "Her2", *(f"type {k}" for k in range(3, n_classes))]
    found = predictions(n, names or NAMES[:n_views], classes[:n_classes], seed, missing)
    return study(*found, classes[:n_classes])


def predictions(n, names, classes, seed, missing):
    """Views vote for the true class, or for another one where they are fooled."""
    rng = np.random.RandomState(seed)
    n_views, n_classes = len(names), len(classes)
    shares = np.arange(n_classes, 0, -1) / np.arange(n_classes, 0, -1).sum()
    truth = rng.choice(n_classes, size=n, p=shares)
    present = rng.uniform(size=(n, n_views)) > missing * np.arange(n_views) / max(n_views - 1, 1)
    present[:, 0] |= ~present.any(axis=1)
    fooled = rng.uniform(size=(n, n_views)) > np.linspace(0.82, 0.62, n_views)
    says = np.where(fooled, rng.randint(n_classes, size=(n, n_views)), truth[:, np.newaxis])
    sure = np.clip(rng.beta(8, 2, (n, n_views)) - 0.2 * fooled, 1 / n_classes, 0.99)
    doubt = 0.25 * fooled * rng.uniform(0.4, 1.4, (n, n_views))
    trust = np.where(present, np.clip(rng.beta(9, 2, (n, n_views)) - doubt, 0.02, 0.98), 0.0)
    votes = np.zeros((n, n_views, n_classes))
    np.put_along_axis(votes, says[:, :, np.newaxis], (2.5 * trust * sure)[:, :, np.newaxis], axis=2)
    prior = np.log(shares)
    decision = prior + votes.sum(axis=1)
    chances = np.exp(decision) / np.exp(decision).sum(axis=1, keepdims=True)
    second, first = np.argsort(decision, axis=1)[:, -2:].T
    rows = np.arange(n)
    without = decision[:, np.newaxis] - votes
    several = present & (present.sum(axis=1, keepdims=True) > 1)
    decisive = several & (without.argmax(axis=2) != first[:, np.newaxis])
    both = present[:, :, np.newaxis] & present[:, np.newaxis, :]
    apart = (both & (says[:, :, np.newaxis] != says[:, np.newaxis, :])).sum(axis=(1, 2))
    angle = 2 * np.pi * (truth + 0.5 * (truth != first)) / n_classes
    far = 0.4 + chances.max(axis=1)
    place = np.column_stack([far * np.cos(angle), far * np.sin(angle)])
    place += 0.2 * rng.normal(size=(n, 2))
    near = [[int(j) for j in own] for own in np.argsort(place @ place[:400].T, axis=1)[:, -3:]]
    ids = [f"P{k:03d}" for k in range(n)]
    labels = np.array(classes, dtype=object)
    alone = labels[says]
    alone[~present] = None
    explanation = Explanation(
        ids=ids,
        views=list(names),
        classes=labels,
        truth=labels[truth],
        predictions=labels[first],
        runner_up=labels[second],
        probabilities=chances,
        trust=trust,
        contributions=votes[rows, :, first] - votes[rows, :, second],
        base_values=prior[first] - prior[second],
        alone=alone,
        alone_probabilities=np.where(present, sure, np.nan),
        alone_evidence=np.where(present, log_odds(says, sure, first, second, n_classes), np.nan),
        without=np.where(several, labels[without.argmax(axis=2)], None),
        unit="log-odds",
        disagreement=apart / np.maximum(both.sum(axis=(1, 2)), 1),
        presence=present,
        decisive=decisive,
        status=statuses(says, sure > 0.6, present, decisive),
        familiarity=np.where(present, np.clip(trust + 0.3, 0, 1), 0.0),
    )
    similarities = [[0.91, 0.84, 0.8][: len(own)] for own in near]
    return explanation, SampleMap(
        place, near, SupportSamples(ids, labels[truth], similarities), explained=0.46
    )


def log_odds(says, sure, first, second, n_classes):
    """Log-odds of the predicted class against the runner-up for views that predict alone."""
    rest = (1 - sure) / max(n_classes - 1, 1)
    of_first = np.where(says == first[:, np.newaxis], sure, rest)
    return np.log(of_first / np.where(says == second[:, np.newaxis], sure, rest))


def statuses(says, sure, present, decisive):
    """The four kinds of samples, the first that applies."""
    counted = present & sure
    lowest = np.where(counted, says, 99).min(axis=1)
    highest = np.where(counted, says, -1).max(axis=1)
    kinds = [lowest < highest, highest < 0, decisive.any(axis=1)]
    # Nobody is sure: the highest is below the lowest.
    kinds[0] &= highest >= 0
    return np.select(kinds, ["contradict", "unsure", "hinges"], "agree")


def study(explanation, sample_map, classes):
    """The report of a comparison about these predictions."""
    names = explanation.views
    m = len(names)
    views = [
        ViewSummary(
            name,
            200 - 15 * k,
            Interval(0.933 - 0.03 * k, 0.896 - 0.035 * k, 0.969 - 0.02 * k),
            Interval(0.031 - 0.016 * k, 0.004 - 0.02 * k, 0.058 - 0.01 * k),
            float(1 - explanation.presence[:, k].mean()),
        )
        for k, name in enumerate(names)
    ]
    alone = f"{names[0]} alone"
    return Report(
        title="Subtypes of breast tumours",
        verdict="",
        choice="Chosen: trusted vote, 95 %. A uniform mix is as accurate.",
        score_name="accuracy",
        classes=classes,
        views=views,
        leaderboard=leaderboard(names),
        findings=[Finding("LOKL003", f"The mix is not clearly better than {alone}.")],
        subsets=subsets(names) if m <= 5 else [],
        explanation=explanation,
        sample_map=sample_map,
        audit={
            "rows": f"{len(explanation)} joined on patient",
            "duplicates across the split": "none",
            "folds": "5 folds x 2 repeats",
            "seed": 0,
            "versions": {"lokl": "0.1.0", "Python": "3.12.4", "numpy": "2.3.1"},
        },
        command="lokl compare mrna.csv mirna.csv --on patient --target clinical.csv:subtype -o run",
        alignment=KernelAlignment(
            np.full((m, m), 0.35) + 0.65 * np.eye(m), np.linspace(0.5, 0.2, m)
        ),
        sources=[
            SourceFile(f"{name}.csv", 150, 200, 0.013, "3f79bb7b435b0532" * 4) for name in names
        ],
    )


def leaderboard(names):
    def others(mean):
        area = 1 - (1 - mean) / 4
        return {
            "balanced accuracy": Interval(mean - 0.01, mean - 0.05, mean + 0.02),
            "AUROC": Interval(area, area - 0.02, area + 0.03),
            "log loss": Interval(2 * (1 - mean), 1.8 * (1 - mean), 2.3 * (1 - mean)),
        }

    def row(name, mean, low, high, seconds, behind, **more):
        score = Interval(mean, low, high)
        more |= {"behind": Interval(*behind), "other_scores": others(mean)}
        return LeaderboardEntry(name, score, seconds, **more)

    vote, alone = f"trusted vote, {len(names)} views", f"{names[0]} alone"
    return [
        LeaderboardEntry(
            vote, Interval(0.953, 0.921, 0.98), 2.1, 0.62, chosen=True, other_scores=others(0.953)
        ),
        row("uniform mix", 0.947, 0.912, 0.976, 0.3, (0.006, -0.012, 0.024), support=0.71),
        row(alone, 0.933, 0.896, 0.969, 0.12, (0.02, -0.008, 0.049), support=0.55),
        row("logistic", 0.933, 0.893, 0.966, 0.05, (0.02, -0.004, 0.044), baseline=True),
        row("random forest", 0.92, 0.876, 0.957, 1.4, (0.033, 0.006, 0.06), baseline=True),
        LeaderboardEntry("LMKL", None, 0.4, note="stopped after 60 s"),
        row("majority class", 0.5, 0.48, 0.52, 0.001, (0.453, 0.41, 0.49), baseline=True),
    ]


def subsets(names):
    rng = np.random.RandomState(1)
    found = []
    for code in range(1, 2 ** len(names)):
        own = tuple(name for k, name in enumerate(names) if code >> k & 1)
        mean = 0.84 + 0.1 * len(own) / len(names) + 0.015 * rng.normal()
        found.append(ViewSubset(own, Interval(mean, mean - 0.04, min(mean + 0.03, 1.0))))
    return sorted(found, key=lambda subset: -subset.score.mean)
