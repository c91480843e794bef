"""Time of the trusted vote with six views and 2,000 samples, compared with the uniform mix."""

from functools import partial
from typing import Any

from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.preprocessing import StandardScaler

from benchmarks.common import Options, Report, cpu_ratio, load_set, main, race, ratio
from lokl import TrustedVoteClassifier, UniformMKLClassifier
from lokl.kernels import Laplacian, per_view

C, MOST = 10.0, 5.0
VOTE, MIX = "trusted vote", "uniform mix"
# Optional parts of a vote.
PARTS: dict[str, dict[str, Any]] = {
    "without the joint expert": {"joint_model": False},
    "without novelty": {"novelty": False},
}


def run(options: Options, report: Report) -> None:
    found = load_set("mfeat")
    X, y = StandardScaler().fit_transform(found.data), found.target
    kernels = per_view(Laplacian("median"), found.views)
    models = {
        MIX: UniformMKLClassifier(kernels, C),
        VOTE: TrustedVoteClassifier(kernels, C, loss="squared"),
        **{
            name: TrustedVoteClassifier(kernels, C, loss="squared", **settings)
            for name, settings in PARTS.items()
        },
    }
    times, _ = race({name: partial(model.fit, X, y) for name, model in models.items()}, options)
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    accuracy = {
        name: 100 * float(cross_val_score(models[name], X, y, cv=folds).mean())
        for name in (MIX, VOTE)
    }
    report.table(
        f"{len(y):,} samples, {len(found.views)} views, {len(set(y))} classes, C {C:g}",
        [
            {
                "": name,
                "fit": times[name],
                "time relative to the uniform mix": ratio(times[name], times[MIX]),
                "processor time": cpu_ratio(times[name], times[MIX]),
                "accuracy in five folds, %": accuracy.get(name, ""),
            }
            for name in models
        ],
    )
    report.quality(
        "accuracy of the uniform mix minus the vote", accuracy[MIX] - accuracy[VOTE], "<=", 0.5
    )
    for what, compare in (("time", ratio), ("processor time", cpu_ratio)):
        relative = compare(times[VOTE], times[MIX])
        report.target(f"{what} relative to the uniform mix", relative, "<=", MOST)


if __name__ == "__main__":
    main(run)
