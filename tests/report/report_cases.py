"""Reports about generated samples, for all tests of the page."""

import numpy as np

from lokl.report import Candidate, Cases, Finding, Interval, Report, Subset, ViewWorth


def cases(n=60, n_views=3, n_classes=3, seed=0, names="P{:03d}"):
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
    return Report(
        title=f"Subtypes by {words}",
        verdict="The vote reaches 95.0 % (91.0 to 98.0). A forest reaches 92.0 %.",
        score_name="accuracy",
        classes=[f"class {k}" for k in range(3)] if classes is None else classes,
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
