"""Which values a setting may have: a check, and the words with which the reference says so."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from numbers import Integral
from typing import Any

from sklearn.utils import check_random_state

from lokl._checks import (
    check_choice,
    check_count,
    check_norm,
    check_not_negative,
    check_positive,
    check_share,
)


@dataclass(frozen=True)
class Rule:
    """Allowed values of a setting."""

    words: str  # the type, as numpydoc writes it
    check: Callable[[str, Any], Any] | None = (
        None  # check(name, value) raises; None: checked when used
    )


def _check_doubt(name: str, value: Any) -> None:
    if check_not_negative(name, value) >= 1:
        raise ValueError(f"{name} must be at least 0 and below 1, got {value!r}")


def _check_rounds(name: str, value: Any) -> None:
    if value != -1:
        check_count(name, value)


def _check_steps(name: str, value: Any) -> None:
    check_count(name, value, -1)


def _check_or_none(check: Callable[[str, Any], Any], name: str, value: Any) -> None:
    if value is not None:
        check(name, value)


def _check_jobs(name: str, value: Any) -> None:
    if value is not None and (not isinstance(value, Integral) or value == 0):
        raise ValueError(
            f"{name} must be a number of threads, a negative number (-1 for all processors) or "
            f"None for one, got {value!r}"
        )


def _check_callback(name: str, value: Any) -> None:
    if value is not None and not callable(value):
        raise ValueError(f"{name} must be a function of a step or None, got {value!r}")


def _check_seed(name: str, value: Any) -> None:
    # A generator that starts from a number takes long to make; what is a seed is told without.
    if not (isinstance(value, Integral) and 0 <= int(value) < 2**32):
        check_random_state(value)


POSITIVE = Rule("float", check_positive)
NOT_NEGATIVE = Rule("float", check_not_negative)
SHARE = Rule("float", check_share)
DOUBT = Rule("float", _check_doubt)
NORM = Rule("float", check_norm)
FLAG = Rule("bool")
ROUNDS = Rule("int", _check_rounds)
STEPS = Rule("int", _check_steps)
JOBS = Rule("int or None", _check_jobs)
CALLBACK = Rule("callable or None", _check_callback)
SEED = Rule("int, RandomState or None", _check_seed)


def one_of(*words: str) -> Rule:
    """One of some words."""
    return Rule(
        "{" + ", ".join(f'"{word}"' for word in words) + "}", partial(check_choice, choices=words)
    )


def count(least: int = 1) -> Rule:
    """A whole number of at least `least`."""
    return Rule("int", partial(check_count, least=least))


def or_none(rule: Rule) -> Rule:
    """What a rule allows, or None."""
    assert rule.check is not None
    return Rule(f"{rule.words} or None", partial(_check_or_none, rule.check))


def anything(words: str) -> Rule:
    """Values that are checked when they are used."""
    return Rule(words)
