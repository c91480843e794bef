"""What a model says about the samples of a table, and why."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from lokl._arrays import Array
from lokl.base.delegation import layers_with, unwrapped
from lokl.explain.answers import ViewAnswers, answers_by_view
from lokl.explain.similarity import most_alike
from lokl.explain.views import by_view, present_in, trust_in_views, views_of
from lokl.tables.preparation import places_in_model, schema_of
from lokl.tables.sources import TableError
from lokl.tables.table import Table

# Samples that are named as most alike.
_ALIKE = 3


@dataclass(frozen=True, eq=False)
class Answers:
    """Predictions about samples.

    Attributes
    ----------
    ids : list of str
    prediction : list
        Class or number of each sample.
    probability : dict of class to array
        Empty where the model has no probabilities.
    trust : dict of str to array
        By view, from 0 to 1, 0 where a sample lacks the view; empty where there is one view.
    """

    ids: list[str]
    prediction: list[Any]
    probability: dict[Any, Array]
    trust: dict[str, Array]

    def records(self) -> list[dict[str, Any]]:
        """Return one plain mapping for each sample."""
        return [
            {
                "id": name,
                "prediction": said,
                **{f"probability {c}": float(p[j]) for c, p in self.probability.items()},
                **{f"trust {view}": float(t[j]) for view, t in self.trust.items()},
            }
            for j, (name, said) in enumerate(zip(self.ids, self.prediction, strict=True))
        ]


@dataclass(frozen=True)
class Voice:
    """What one view has to say about one sample; all None where the sample lacks it."""

    view: str
    says: Any = None  # the likeliest class, or the number, if only this view is there
    probability: float | None = None  # of that class
    trust: float | None = None
    pull: float | None = None  # its part in the decision for `towards`
    towards: Any = None  # class, or "more" and "less" of a number
    novelty: float | None = None  # how far the sample is unlike those of training


@dataclass(frozen=True)
class Alike:
    """Another sample that the model finds alike."""

    name: str
    prediction: Any
    likeness: float  # 1 for one that is the same to the model


@dataclass(frozen=True)
class Story:
    """One prediction, and who speaks for what."""

    name: str
    prediction: Any
    probability: dict[Any, float]  # of each class, the likeliest first
    prior: float | None  # share of the predicted class in training, or the mean of the numbers
    voices: tuple[Voice, ...]
    disagreement: float | None
    alike: tuple[Alike, ...]


def answers(model: Any, table: Table) -> Answers:
    """Ask a model about all samples of a table."""
    outer, X = next(layers_with(model, table.frame))
    probability = {}
    if hasattr(outer, "predict_proba"):
        chances = outer.predict_proba(X)
        probability = dict(zip(np.asarray(outer.classes_).tolist(), chances.T, strict=True))
    trust = {}
    if len(schema_of(model).views) > 1:
        trust = _trust(outer, X, places_in_model(model))
    return Answers(table.ids, np.asarray(outer.predict(X)).tolist(), probability, trust)


def _trust(outer: Any, X: Any, places: Any) -> dict[str, Array]:
    inner, Z = unwrapped(outer, X)
    views = views_of(inner, places)
    trust, _ = trust_in_views(inner, Z, views)
    trust = np.where(present_in(inner, Z, views), trust, 0.0)
    return {view.name: own for view, own in zip(views, trust.T, strict=True)}


def story(model: Any, table: Table, name: str) -> Story:
    """Tell about one sample of a table."""
    if name not in table.frame.index:
        shown = ", ".join(table.ids[:3])
        raise TableError(f"no sample is called {name!r}; the first are {shown}")
    row = table.ids.index(name)
    frame = table.frame.iloc[[row]]
    outer, X = next(layers_with(model, frame))
    said = _plain(outer.predict(X)[0])
    places = places_in_model(model)
    told = answers_by_view(outer, X, places)
    several = len(told.views) > 1
    return Story(
        name,
        said,
        _ranked(outer, X),
        _prior(model, said),
        tuple(_voices(outer, X, told, places)) if several else (),
        _known(told.disagreement[0]) if several else None,
        tuple(_alike(model, table, row)),
    )


def _known(value: Any) -> float | None:
    return None if np.isnan(value) else float(value)


def _ranked(outer: Any, X: Any) -> dict[Any, float]:
    if not hasattr(outer, "predict_proba"):
        return {}
    classes = np.asarray(outer.classes_).tolist()
    chances = dict(zip(classes, map(float, outer.predict_proba(X)[0]), strict=True))
    return dict(sorted(chances.items(), key=lambda pair: -pair[1]))


def _prior(model: Any, said: Any) -> float | None:
    first = model.steps[0][1] if hasattr(model, "steps") else model
    prior = getattr(first, "prior_", None)
    return prior.get(said) if isinstance(prior, dict) else prior


def _voices(outer: Any, X: Any, told: ViewAnswers, places: Any) -> Iterator[Voice]:
    inner, Z = unwrapped(outer, X)
    pulls = by_view(np.asarray(inner.contributions(Z)), views_of(inner, places), np.sum)[0]
    classes = getattr(outer, "classes_", None)
    for place, view in enumerate(told.views):
        if not told.present[0, place]:
            yield Voice(view)
            continue
        says, sure = told.says[0, place], told.sure[0, place]
        pull, towards = _pull(classes, pulls[..., place])
        novelty = None if told.familiar is None else 1.0 - float(told.familiar[0, place])
        yield Voice(
            view,
            _said(classes, says),
            _known(sure),
            float(told.trust[0, place]),
            pull,
            towards,
            novelty,
        )


def _said(classes: Any, says: Any) -> Any:
    if classes is None:
        return _known(says)
    return _plain(classes[int(says)]) if says >= 0 else None


def _pull(classes: Any, part: Array) -> tuple[float, Any]:
    """How strongly a part speaks, and for what."""
    if classes is None:
        return float(np.abs(part).max()), "more" if np.ravel(part)[0] > 0 else "less"
    if np.ndim(part) == 0:
        return abs(float(part)), _plain(classes[int(part > 0)])
    best = int(np.argmax(part))
    return float(part[best] - np.mean(part)), _plain(classes[best])


def _alike(model: Any, table: Table, row: int) -> Iterator[Alike]:
    """Samples of the same table that the model finds alike, with what it says about them."""
    near = most_alike(model, table.frame, row, _ALIKE)
    if not near:
        return
    rows = [k for k, _ in near]
    said = np.asarray(model.predict(table.frame.iloc[rows])).tolist()
    for (k, likeness), prediction in zip(near, said, strict=True):
        yield Alike(table.ids[k], prediction, likeness)


def _plain(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else value
