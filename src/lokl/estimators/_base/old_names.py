"""Settings that were renamed: the old name works for one more version, and says so.

>>> from lokl.estimators._base.rules import POSITIVE
>>> from lokl.estimators._base.settings import setting, settings
>>> @settings
... class Model:
...     '''A model.'''
...
...     cost: float = setting(1.0, POSITIVE, "Cost of margin violations.")
...     C: float = old_name("cost")
>>> value_of(Model(C=2.0), "cost"), value_of(Model(cost=3.0), "cost")
(2.0, 3.0)
"""

from collections.abc import Iterator
from dataclasses import Field, field, fields
from typing import Any

from lokl._notices import tell
from lokl.estimators._base.rules import Rule

# The default of an old name: as in scikit-learn, a value that nobody would choose.
_NOT_GIVEN = "deprecated"


def old_name(new: str) -> Any:
    """Declare the name that a setting had before, beside the setting `new`."""
    text = f"Old name of `{new}`: it works, with a FutureWarning, until the next version."
    metadata = {"rule": Rule("object"), "text": text, "method_too": False, "new_name": new}
    return field(default=_NOT_GIVEN, kw_only=True, metadata=metadata)


def value_of(estimator: Any, name: str) -> Any:
    """Return the value of a setting, under its old name where that was used."""
    for own in _given(estimator):
        if own.metadata["new_name"] == name:
            return getattr(estimator, own.name)
    return getattr(estimator, name)


def check_old_names(estimator: Any) -> None:
    """Warn where an old name was used; raise where both were, or where the value is wrong."""
    declared = {known.name: known for known in fields(estimator)}
    for old in _given(estimator):
        new = declared[old.metadata["new_name"]]
        given, value = getattr(estimator, new.name), getattr(estimator, old.name)
        if given is not new.default and given != new.default:
            raise ValueError(
                f"{old.name}={value!r} and {new.name}={given!r} are two names of one setting; "
                f"give {new.name} only"
            )
        tell(
            f"old name {old.name}",
            f"the setting {old.name} is now called {new.name}; the old name goes with the next "
            "version",
            FutureWarning,
        )
        check = new.metadata["rule"].check
        if check is not None:
            check(old.name, value)


def _given(estimator: Any) -> Iterator[Field[Any]]:
    """Old names that were used."""
    for known in fields(estimator):
        if "new_name" in known.metadata:
            value = getattr(estimator, known.name)
            if not (isinstance(value, str) and value == _NOT_GIVEN):
                yield known
