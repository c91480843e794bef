"""Who is compared: methods of this library, single views, and what people would try first."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lokl._methods import METHODS, Method
from lokl.comparison import baselines
from lokl.comparison.baselines import Baseline
from lokl.comparison.ours import Automatic, OneView, Searched
from lokl.comparison.parts import Recipe
from lokl.tables import Table, TableError
from lokl.tables.learning import estimator_class, names_of, plain_name

OURS, VIEW, BASELINE = "ours", "view", "baseline"
AUTO, MIX, VOTE = "AutoMKL", "uniform mix", "trusted vote"
# What says the same about every sample.
GUESSES = ("majority class", "mean")
# Words that stand for several candidates.
_ALL_VIEWS, _ALL_BASELINES = "views", "baselines"
_UNIFORM = METHODS[0]


@dataclass(frozen=True)
class Candidate:
    """One row of the comparison.

    Attributes
    ----------
    name : str
        As tables show it.
    role : {"ours", "view", "baseline"}
    recipe : Recipe
    complexity : int
        Of ours: machines on a fixed mix, learned weights, learned trust, everything chosen. Of two
        that are about as good the simpler one is taken.
    words : frozenset of str
        Other names by which it can be asked for.
    """

    name: str
    role: str
    recipe: Recipe
    complexity: int = 0
    words: frozenset[str] = frozenset()


def candidates_for(table: Table, methods: Sequence[str] = ()) -> list[Candidate]:
    """Return candidates for a table: the standard ones, or those that are asked for by name."""
    known = list(_standard(table))
    if not methods:
        return known
    chosen: dict[str, Candidate] = {}
    for given in (part.strip() for word in methods for part in word.split(",")):
        for found in _named(given, known, table):
            chosen.setdefault(found.name, found)
    return list(chosen.values())


def _standard(table: Table) -> Iterator[Candidate]:
    numbers, several = table.task == "numbers", len(table.views) > 1
    yield Candidate(AUTO, OURS, Automatic(), 3, frozenset({"auto"}))
    if several:
        yield _ours(next(method for method in METHODS if method.name == VOTE))
    yield _ours(_UNIFORM)
    if several:
        for view in table.views:
            yield Candidate(alone(view), VIEW, OneView(_UNIFORM, view), 0, frozenset({view}))
    for name, recipe, words in (
        (GUESSES[numbers], Baseline(baselines.guess), {"guess", "majority"}),
        (
            "ridge regression" if numbers else "logistic regression",
            Baseline(baselines.linear),
            {"linear", "ridge", "logistic"},
        ),
        ("SVR" if numbers else "SVC", Baseline(baselines.machine), {"svm", "svc", "svr"}),
        ("random forest", Baseline(baselines.forest, fills=False), {"forest"}),
        ("gradient boosting", Baseline(baselines.boosting, fills=False), {"boosting"}),
    ):
        yield Candidate(name, BASELINE, recipe, 0, frozenset(words))


def alone(view: str) -> str:
    """Name of the candidate that sees one view only."""
    return f"{view} alone"


def _ours(method: Method) -> Candidate:
    level = 0 if method is _UNIFORM else 2 if method.can("localized") else 1
    name = MIX if method is _UNIFORM else method.name
    return Candidate(name, OURS, Searched(method), level, frozenset(names_of(method)))


def _named(given: str, known: Sequence[Candidate], table: Table) -> list[Candidate]:
    wanted = plain_name(given)
    roles = {_ALL_VIEWS: VIEW, _ALL_BASELINES: BASELINE}
    if wanted in roles:
        return [one for one in known if one.role == roles[wanted]]
    for one in known:
        if wanted in {plain_name(one.name), *map(plain_name, one.words)}:
            return [one]
    for method in METHODS:
        if wanted in names_of(method):
            # Raises where the method predicts classes only.
            estimator_class(method.stem, table.task == "numbers")
            return [_ours(method)]
    names = [*(one.name for one in known), _ALL_VIEWS, _ALL_BASELINES]
    others = [method.name for method in METHODS if method.name not in names]
    raise TableError(f"unknown candidate {given!r}; known are {', '.join([*names, *others])}")
