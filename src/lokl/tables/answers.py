"""What a model says about the samples of a table, and why."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from lokl._arrays import Array
from lokl.tables.errors import TableError
from lokl.tables.schema import deciding, schema_of
from lokl.tables.table import Table


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


@dataclass(frozen=True)
class Story:
    """One prediction, and who speaks for what."""

    name: str
    prediction: Any
    probability: dict[Any, float]  # of each class, the likeliest first
    voices: tuple[Voice, ...]
    disagreement: float | None


def answers(model: Any, table: Table) -> Answers:
    """Ask a model about all samples of a table."""
    last, X = _last_step(model, table.frame)
    probability = {}
    if hasattr(last, "predict_proba"):
        chances = last.predict_proba(X)
        probability = dict(zip(np.asarray(last.classes_).tolist(), chances.T, strict=True))
    trust = {}
    if len(schema_of(model).views) > 1:
        trust = dict(zip(_names(model), _trust(model, X).T, strict=True))
    return Answers(table.ids, np.asarray(last.predict(X)).tolist(), probability, trust)


def story(model: Any, table: Table, name: str) -> Story:
    """Tell about one sample of a table."""
    if name not in table.frame.index:
        shown = ", ".join(table.ids[:3])
        raise TableError(f"no sample is called {name!r}; the first are {shown}")
    row = table.frame.loc[[name]]
    last, X = _last_step(model, row)
    said = last.predict(X)[0]
    chances = _chances(last, X)[0]
    ranked = dict(sorted(chances.items(), key=lambda pair: -pair[1]))
    views = schema_of(model).views
    voices = _voices(model, row, views) if len(views) > 1 else ()
    differ = float(last.disagreement(X)[0]) if hasattr(last, "disagreement") else None
    return Story(name, _plain(said), ranked, voices, differ)


def _voices(model: Any, row: Any, views: dict[str, list[str]]) -> tuple[Voice, ...]:
    last, X = _last_step(model, row)
    trust, names = _trust(model, X)[0], _names(model)
    parts = last.contributions(X)[0]
    voices = []
    for place, view in enumerate(names):
        own = [column for column in views[view] if column in row.columns]
        if not own or row[own].isna().all(axis=None):
            voices.append(Voice(view))
            continue
        # Who is asked alone: all other views are taken away.
        _, alone = _last_step(model, row[own])
        says, chance = last.predict(alone)[0], _chances(last, alone)[0]
        pull, towards = _pull(last, parts[..., place])
        known = chance.get(_plain(says))
        voices.append(Voice(view, _plain(says), known, float(trust[place]), pull, towards))
    return tuple(voices)


def _pull(last: Any, part: Array) -> tuple[float, Any]:
    """How strongly a part speaks, and for what."""
    classes = getattr(last, "classes_", None)
    if classes is None:
        return float(np.abs(part).max()), "more" if np.ravel(part)[0] > 0 else "less"
    if np.ndim(part) == 0:
        return abs(float(part)), _plain(classes[int(part > 0)])
    best = int(np.argmax(part))
    return float(part[best] - np.mean(part)), _plain(classes[best])


def _chances(last: Any, X: Any) -> list[dict[Any, float]]:
    if not hasattr(last, "predict_proba"):
        return [{} for _ in range(len(X))]
    classes = np.asarray(last.classes_).tolist()
    return [dict(zip(classes, map(float, row), strict=True)) for row in last.predict_proba(X)]


def _last_step(model: Any, frame: Any) -> tuple[Any, Any]:
    """Return the step that decides, and the samples as it sees them."""
    if not hasattr(model, "steps"):
        return model, frame
    return model.steps[-1][1], model[:-1].transform(frame) if len(model.steps) > 1 else frame


def _trust(model: Any, X: Any) -> Array:
    """Trust where the model has it, else shares; (n_samples, n_views)."""
    last = next(deciding(model))
    return np.asarray(last.trust(X) if hasattr(last, "trust") else last.gate(X))


def _names(model: Any) -> list[str]:
    for own in deciding(model):
        if hasattr(own, "kernel_names_"):
            return list(own.kernel_names_)
    raise TableError("the model does not tell the names of its views")


def _plain(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else value
