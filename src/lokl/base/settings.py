"""Settings of estimators, each declared once with its default, allowed values and description.

>>> from lokl.base.settings import POSITIVE
>>> @settings
... class Model:
...     '''A model.'''
...
...     C: float = setting(1.0, POSITIVE, "Cost of margin violations.")
>>> Model(C=2.0).C
2.0
>>> Model.__doc__.splitlines()[4:]
['C : float, default=1.0', '    Cost of margin violations.']
"""

import inspect
import re
import textwrap
from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import MISSING, Field, dataclass, field, fields
from functools import lru_cache, partial
from numbers import Integral
from typing import Any, TypeVar, dataclass_transform

from sklearn.base import clone
from sklearn.utils import check_random_state

from lokl._methods import method_of_class
from lokl._parameters import (
    check_choice,
    check_count,
    check_not_negative,
    check_positive,
    number_check,
)
from lokl.base.model import FEATURE_ATTRIBUTES, LEAVE_ONE_OUT
from lokl.kernels.dictionaries import WORDS, as_kernel, is_one_kernel, named_kernels


@dataclass(frozen=True)
class Rule:
    """Allowed values of a setting."""

    words: str  # type in numpydoc notation
    # check(name, value) raises ValueError; None if the value is checked when it is used.
    check: Callable[[str, Any], Any] | None = None


def check_unless(check: Callable[[str, Any], Any], special: Any, name: str, value: Any) -> None:
    """Check a value, unless it is the special value None, a number or a string."""
    if not (value is special or (isinstance(value, Integral | str) and value == special)):
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
    # Creating a generator is slow, and not needed to check an integer seed.
    if not (isinstance(value, Integral) and 0 <= int(value) < 2**32):
        check_random_state(value)


POSITIVE = Rule("float", check_positive)
NOT_NEGATIVE = Rule("float", check_not_negative)
SHARE = Rule("float", number_check("between 0 and 1", lambda value: 0 < value < 1))
NORM = Rule("float", number_check("a number >= 1", lambda value: value >= 1))
FLAG = Rule("bool")
ROUNDS = Rule("int", partial(check_unless, check_count, -1))
STEPS = Rule("int", partial(check_count, least=-1))
JOBS = Rule("int or None", _check_jobs)
CALLBACK = Rule("callable or None", _check_callback)
SEED = Rule("int, RandomState or None", _check_seed)


def one_of(*words: str) -> Rule:
    """Return the rule for one of several strings."""
    choices = ", ".join(f'"{word}"' for word in words)
    return Rule(f"{{{choices}}}", partial(check_choice, choices=words))


def count(least: int = 1) -> Rule:
    """Return the rule for an integer of at least `least`."""
    return Rule("int", partial(check_count, least=least))


def or_none(rule: Rule) -> Rule:
    """Return a rule that also allows None."""
    assert rule.check is not None
    return Rule(f"{rule.words} or None", partial(check_unless, rule.check, None))


def anything(words: str) -> Rule:
    """Return the rule for values that are checked when they are used."""
    return Rule(words)


Class = TypeVar("Class", bound=type)

# Type and meaning of settings or fitted attributes, by name.
Entries = dict[str, tuple[str, str]]

_WIDTH = 100
_TASKS = {"Classifier": "classes", "Regressor": "numeric targets", "Survival": "censored times"}
_HEADING = re.compile(r"^([\w ]+)\n-{3,}\n", flags=re.MULTILINE)
_ENTRY = re.compile(r"^(\S.*?) : (.*)((?:\n +.*)*)", flags=re.MULTILINE)


def setting(default: Any, rule: Rule, text: str, *, kw_only: bool = True) -> Any:
    """Declare a setting of an estimator, a field of its dataclass.

    Parameters
    ----------
    default : object
        ``MISSING`` of :mod:`dataclasses` if the setting is required.
    rule : Rule
        Allowed values.
    text : str
        Description for ``help()`` and the reference.
    kw_only : bool, default=True
        Whether it must be passed by keyword.
    """
    metadata = {"rule": rule, "text": text}
    return field(default=default, kw_only=kw_only, metadata=metadata)


def learning_tolerance(default: float = 1e-3) -> Any:
    """Declare `learn_tol`, at which methods in rounds stop."""
    return setting(
        default,
        POSITIVE,
        "The rounds stop at this certified duality gap, relative to the objective. If the problem "
        "is not convex, they stop at this relative decrease of the objective.",
    )


@dataclass_transform(kw_only_default=True, field_specifiers=(setting,))
def settings(cls: Class) -> Class:
    """Create constructor and documentation of a class from its settings.

    A plain value for a setting of a base class only changes its default. Fitted attributes are
    collected from the sections "Attributes" of the class, its base classes and its model.
    """
    inherited = {declared.name: declared for declared in _settings_of(cls)}
    for name in inspect.get_annotations(cls):
        value = cls.__dict__.get(name)
        if isinstance(value, Field):
            # Classes may share a declaration, but dataclasses modify it.
            setattr(cls, name, copy(value))
        elif name in inherited:
            declared = inherited[name]
            changed = field(default=value, kw_only=declared.kw_only, metadata=declared.metadata)
            setattr(cls, name, changed)
    made: Any = dataclass(eq=False, repr=False)(cls)
    made._own_attributes = _described_attributes(made)
    if made.__doc__ and not made.__name__.startswith("_"):
        made.__doc__ = _document(made)
    return made


def check_settings(estimator: Any) -> None:
    """Raise ValueError if a setting is out of range; the error names it and its value."""
    # get_params would inspect the signature of the constructor each time.
    values = vars(estimator)
    for declared in _settings_of(type(estimator)):
        check = declared.metadata["rule"].check
        if check is not None:
            check(declared.name, values[declared.name])


def _settings_of(cls: Any) -> list[Field[Any]]:
    if not hasattr(cls, "__dataclass_fields__"):
        return []
    return [declared for declared in fields(cls) if "rule" in declared.metadata]


def _document(cls: Any) -> str:
    """Return the summary of a class, all settings and attributes, then its other sections."""
    settings = {
        d.name: (f"{d.metadata['rule'].words}{_default(d)}", d.metadata["text"])
        for d in _in_reading_order(cls)
    }
    found = _sections(cls)
    lists = {"Parameters": settings, "Attributes": _all_attributes(cls)}
    sections = {"": found[""], **{title: _listed(lists[title]) for title in lists}}
    sections["See Also"] = found.get("See Also") or _see_also(cls)
    sections |= {title: text for title, text in found.items() if title not in sections}
    return "\n\n".join(
        f"{title}\n{'-' * len(title)}\n{text}" if title else text
        for title, text in sections.items()
        if text
    )


def _see_also(cls: Any) -> str:
    """Return the other estimators of a method, and what is used together with it."""
    method = method_of_class(cls)
    if method is None:
        return ""
    task = cls.__name__.removeprefix(method.stem)
    names = {f"{method.stem}{other}": f"The same for {_TASKS[other]}." for other in _TASKS}
    related = {f"lokl.{name}": names[name] for name in method.classes if name != cls.__name__}
    if method.stem != "UniformMKL":
        related[f"lokl.UniformMKL{task}"] = "The average of the kernels, as a baseline."
    related["lokl.search.KernelSearchCV"] = "Search over costs, kernels and settings."
    if method.learns == "weights":
        related["lokl.explain.weight_stability"] = "Whether learned weights can be interpreted."
    else:
        related["lokl.explain.explain"] = "The role of each view in single predictions."
    return "\n".join(f"{name} : {text}" for name, text in related.items())


def _in_reading_order(cls: Any) -> list[Field[Any]]:
    """Return positional settings, then settings of the method, then common settings."""
    common = {
        name
        for base in cls.__mro__[1:]
        if base.__dict__.get("_is_common")
        for name in base.__dataclass_fields__
    }
    return sorted(_settings_of(cls), key=lambda field: (field.kw_only, field.name in common))


def _all_attributes(cls: Any) -> Entries:
    """Return every fitted attribute: of the model, and of the base classes."""
    model: Any = getattr(cls, "_model_class", object)
    found: Entries = {}
    for base in reversed(model.__mro__):
        if "attributes" in vars(base):
            found.update(_described_attributes(base.attributes))
    for base in reversed(cls.__mro__):
        found.update(base.__dict__.get("_own_attributes", {}))
    method = method_of_class(cls)
    if method is not None and method.can("squared loss"):
        found.update(LEAVE_ONE_OUT)
    return found and {**found, **FEATURE_ATTRIBUTES}


def _described_attributes(described: Any) -> Entries:
    """Return the fitted attributes that the docstring of a class or method describes."""
    entries = _ENTRY.findall(_sections(described).get("Attributes", ""))
    return {name: (words, " ".join(text.split())) for name, words, text in entries}


def _sections(described: Any) -> dict[str, str]:
    """Return the sections of a docstring by title; the title of the summary is empty."""
    parts = ["", *_HEADING.split(inspect.cleandoc(described.__doc__ or ""))]
    return dict(zip(parts[::2], map(str.strip, parts[1::2]), strict=True))


def _listed(entries: Entries) -> str:
    lines = []
    for name, (words, text) in entries.items():
        lines.append(f"{name} : {words}")
        lines += textwrap.wrap(text, _WIDTH, initial_indent="    ", subsequent_indent="    ")
    return "\n".join(lines)


def _default(declared: Field[Any]) -> str:
    if declared.default is MISSING:
        return ""
    shown = f'"{declared.default}"' if isinstance(declared.default, str) else repr(declared.default)
    return f", default={shown}"


# Kernels as nested parameters. Kernels may be shared by several estimators and the caller, so a
# change replaces a kernel by a changed copy, in a copy of the list or mapping.

PREFIX = "kernels__"


def nested_parameters(kernels: Any) -> dict[str, Any]:
    """Return all kernels of a list or mapping, and their parameters, by full name.

    Full names are ``kernels__rbf__gamma`` by name and ``kernels__0__gamma`` by position.
    """
    named = _standard() if kernels is None else _entries(kernels)
    by_position = {str(i): entry for i, entry in enumerate(named.values())}
    params = {}
    for name, entry in {**by_position, **named}.items():
        params[f"{PREFIX}{name}"] = entry
        kernel = as_kernel(entry) if _is_word(entry) else entry
        if _has_parameters(kernel):
            inside = kernel.get_params(deep=True).items()
            params.update({f"{PREFIX}{name}__{parameter}": value for parameter, value in inside})
    return params


def with_parameters(kernels: Any, changes: Mapping[str, Any]) -> Any:
    """Return kernels with changed parameters, or with some kernels replaced.

    Parameters
    ----------
    kernels : object
        As estimators accept them; not modified.
    changes : mapping
        Values by full name. A list with strings, or None, becomes a mapping, so that names do not
        change with the parameters.
    """
    changes = {name.removeprefix(PREFIX): value for name, value in changes.items()}
    if is_one_kernel(kernels) and not _is_word(kernels):
        return _changed(kernels, changes)
    entries = _entries(kernels)
    # A kernel is replaced before its parameters change.
    for path in sorted(changes, key=len):
        name, parameter = _find(path, list(entries))
        value = changes[path]
        entries[name] = _changed(entries[name], {parameter: value}) if parameter else value
    if isinstance(kernels, list | tuple) and not any(map(_is_word, kernels)):
        return type(kernels)(entries.values())
    if isinstance(kernels, Mapping):
        return dict(zip(kernels, entries.values(), strict=True))
    return entries


@lru_cache(maxsize=1)
def _standard() -> dict[str, Any]:
    """Return the default kernels, the same objects each time, so that parameters compare equal."""
    return _entries(None)


def _entries(kernels: Any) -> dict[str, Any]:
    """Return kernels as given, by name, or by position in a list of objects."""
    if kernels is None:
        return dict(named_kernels(None))
    if _is_word(kernels):
        return {kernels: kernels}
    if isinstance(kernels, Mapping):
        return {str(name): entry for name, entry in kernels.items()}
    if not isinstance(kernels, list | tuple):
        return {}
    if any(map(_is_word, kernels)):
        return dict(zip(named_kernels(kernels), kernels, strict=True))
    return {str(i): entry for i, entry in enumerate(kernels)}


def _is_word(value: Any) -> bool:
    return isinstance(value, str) and value in WORDS


def _has_parameters(kernel: Any) -> bool:
    return hasattr(kernel, "get_params") and not isinstance(kernel, type)


def _find(path: str, names: list[str]) -> tuple[str, str]:
    """Split a path into the name of a kernel and a parameter, "" if there is none."""
    # Names may contain the separator: take the longest match.
    for name in sorted(names, key=len, reverse=True):
        if path == name or path.startswith(f"{name}__"):
            return name, path[len(name) + 2 :]
    first, _, parameter = path.partition("__")
    if first.isdecimal() and int(first) < len(names):
        return names[int(first)], parameter
    known = ", ".join(names) or "none before fit"
    raise ValueError(
        f"unknown kernel {first!r} in parameter '{PREFIX}{path}'; the kernels are: {known}"
    )


def _changed(entry: Any, parameters: Mapping[str, Any]) -> Any:
    """Return a copy of a kernel with changed parameters."""
    kernel = as_kernel(entry) if isinstance(entry, str) else entry
    if not _has_parameters(kernel):
        raise ValueError(
            f"kernel {as_kernel(kernel).label!r} is a function and has no parameter "
            f"{', '.join(parameters)}"
        )
    return clone(kernel).set_params(**parameters)
