"""Settings of estimators: each is declared once, with its default, its rule and its text.

>>> from lokl.estimators._base.rules import POSITIVE
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
from collections.abc import Iterable
from copy import copy
from dataclasses import MISSING, Field, dataclass, field, fields
from types import MethodType
from typing import Any, TypeVar, dataclass_transform

from lokl.estimators._base.old_names import check_old_names, old_name
from lokl.estimators._base.rules import Rule

Class = TypeVar("Class", bound=type)

_WIDTH = 100
_SECTION = re.compile(r"^(Notes|References|Examples)\n-+$", flags=re.MULTILINE)


def setting(
    default: Any, rule: Rule, text: str, *, kw_only: bool = True, method_too: bool = False
) -> Any:
    """Declare a setting of an estimator, which is a field of its dataclass.

    Parameters
    ----------
    default : object
        ``MISSING`` of :mod:`dataclasses` where it must be given.
    rule : Rule
        Allowed values.
    text : str
        What it means, for ``help()`` and the reference.
    kw_only : bool, default=True
        Whether it must be given by name.
    method_too : bool, default=False
        Whether a base class has a method of this name: the constructor and ``get_params`` then
        know the setting, attribute access gives the method, of the class and of its models.
    """
    metadata = {"rule": rule, "text": text, "method_too": method_too}
    return field(default=default, kw_only=kw_only, metadata=metadata)


class _SettingAndMethod:
    """``LMKLClassifier(gate="sigmoid")`` sets the kind of gate, ``model.gate(X)`` asks it."""

    def __init__(self, name: str, method: Any):
        self.name = name
        self.method = method

    def __set__(self, model: Any, value: Any) -> None:
        vars(model)[self.name] = value

    def __get__(self, model: Any, owner: Any = None) -> Any:
        return self.method if model is None else MethodType(self.method, model)


@dataclass_transform(kw_only_default=True, field_specifiers=(setting, old_name))
def settings(cls: Class) -> Class:
    """Make constructor and documentation of a class out of its settings.

    A plain value for a setting of a base class changes its default only.
    """
    inherited = {known.name: known for known in _settings_of(cls)}
    for name in inspect.get_annotations(cls):
        value = cls.__dict__.get(name)
        if isinstance(value, Field):
            # Classes may share a declaration, but dataclasses write into it.
            setattr(cls, name, copy(value))
        elif name in inherited:
            known = inherited[name]
            changed = field(default=value, kw_only=known.kw_only, metadata=known.metadata)
            setattr(cls, name, changed)
    made: Any = dataclass(eq=False, repr=False)(cls)
    for own in _settings_of(made):
        if own.metadata.get("method_too") and own.name in cls.__dict__:
            method = getattr(super(made, made), own.name)
            setattr(made, own.name, _SettingAndMethod(own.name, method))
    if made.__doc__ and not made.__name__.startswith("_"):
        made.__doc__ = _document(made)
    return made


def check_settings(estimator: Any) -> None:
    """Raise where a setting is out of range; the error names it, its value and the remedy."""
    # Not by get_params, which reads the constructor's signature each time.
    values = vars(estimator)
    for declared in _settings_of(type(estimator)):
        check = declared.metadata["rule"].check
        if check is not None:
            check(declared.name, values[declared.name])
    check_old_names(estimator)


def _settings_of(cls: Any) -> list[Field[Any]]:
    if not hasattr(cls, "__dataclass_fields__"):
        return []
    return [known for known in fields(cls) if "rule" in known.metadata]


def _document(cls: Any) -> str:
    """The class's own words, then all settings and attributes, then its notes and examples."""
    own = inspect.cleandoc(cls.__doc__)
    found = _SECTION.search(own)
    end = found.start() if found else len(own)
    settings = [
        (f"{known.name} : {known.metadata['rule'].words}{_default(known)}", _text(known))
        for known in _in_reading_order(cls)
    ]
    attributes = [
        (f"{name} : {words}", text)
        for name, (words, text) in getattr(cls, "_described", dict)().items()
    ]
    parts = [
        own[:end].strip(),
        _section("Parameters", settings),
        _section("Attributes", attributes),
    ]
    return "\n\n".join(part for part in [*parts, own[end:].strip()] if part)


def _in_reading_order(cls: Any) -> list[Field[Any]]:
    """Settings that may be given by position, then the method's own, then the common ones."""
    declared = _settings_of(cls)
    common = {
        name
        for base in cls.__mro__[1:]
        if base.__dict__.get("_is_common")
        for name in base.__dataclass_fields__
    }
    return sorted(declared, key=lambda known: (known.kw_only, known.name in common))


def _section(title: str, entries: Iterable[tuple[str, str]]) -> str:
    lines = []
    for head, text in entries:
        lines.append(head)
        lines += textwrap.wrap(text, _WIDTH, initial_indent="    ", subsequent_indent="    ")
    return "\n".join([title, "-" * len(title), *lines]) if lines else ""


def _text(known: Field[Any]) -> str:
    text = str(known.metadata["text"])
    if not known.metadata["method_too"]:
        return text
    return (
        f'{text} This is the setting of that name, ``get_params()["{known.name}"]``; the method '
        f"``{known.name}(X)`` asks the fitted model."
    )


def _default(known: Field[Any]) -> str:
    if known.default is MISSING:
        return ""
    shown = f'"{known.default}"' if isinstance(known.default, str) else repr(known.default)
    return f", default={shown}"
