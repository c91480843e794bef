"""Fitted models as bytes and back, through skops: what is named is looked at before it is made."""

import io
import json
import re
import zipfile
from collections.abc import Iterator
from typing import Any

from sklearn.base import BaseEstimator

from lokl.files.errors import ModelFileError
from lokl.files.trusted import is_harmless, trusted_beyond_skops

_STATE = "schema.json"
_REMEDY_FOR_CODE = (
    "a file of a model holds no code: use a kernel of lokl.kernels, or a class of scikit-learn, in "
    "the place of your own function or class; or keep the model with pickle"
)


def need_skops(what: str) -> Any:
    """Return skops.io, or say who needs it and how to get it."""
    try:
        import skops.io
    except ImportError as error:
        raise ImportError(
            f"{what} needs skops; install it with: pip install 'lokl[files]'"
        ) from error
    return skops.io


def to_bytes(model: Any) -> bytes:
    """Return a fitted model as bytes, which :func:`from_bytes` can read."""
    skops = need_skops("lokl.save")
    try:
        content: bytes = skops.dumps(model)
        # What cannot be read again is not written in the first place.
        from_bytes(content)
    except Exception as reason:
        # Objects that others wrote fail in many ways when they are asked for their state.
        told = f"the model cannot be stored: {' '.join(str(reason).split())}; {_REMEDY_FOR_CODE}"
        raise ModelFileError(told) from reason
    return content


def from_bytes(content: bytes) -> Any:
    """Return the model that bytes hold; no code runs that the bytes bring or name."""
    skops = need_skops("lokl.load")
    try:
        trusted = _allowed(content)
        model = skops.loads(content, trusted=trusted)
    except ModelFileError:
        raise
    except skops.exceptions.UntrustedTypesFoundException as reason:
        raise ModelFileError(_untrusted(str(reason))) from reason
    except Exception as reason:
        # A file can be wrong in any place: everything that is met while reading says so.
        what = " ".join(f"{type(reason).__name__}: {reason}".split())
        raise ModelFileError(f"its content is damaged ({what[:200]})") from reason
    if not isinstance(model, BaseEstimator):
        raise ModelFileError(f"it holds a {type(model).__name__}, not an estimator")
    return model


def _allowed(content: bytes) -> list[str]:
    """Look at all that bytes name; return what may be made beyond what skops allows."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        if len(set(archive.namelist())) < len(archive.namelist()):
            raise ModelFileError("its content is damaged (a part is there twice)")
        nodes = list(_nodes(json.loads(archive.read(_STATE))))
    for name, loader in nodes:
        if not is_harmless(loader):
            raise ModelFileError(f"it holds {name}, which is code ({loader})")
    return trusted_beyond_skops(nodes)


def _nodes(state: Any) -> Iterator[tuple[str, str]]:
    """Every name in a state, and how its object is made."""
    waiting = [state]
    while waiting:
        found = waiting.pop()
        if isinstance(found, dict):
            if isinstance(found.get("__loader__"), str):
                yield f"{found.get('__module__')}.{found.get('__class__')}", found["__loader__"]
            waiting.extend(found.values())
        elif isinstance(found, list):
            waiting.extend(found)


def _untrusted(told: str) -> str:
    # The first line of what skops tells lists the names in quotation marks.
    names = re.findall(r"'([^']+)'", told.splitlines()[0])
    shown = ", ".join(names[:3]) + (" and others" if len(names) > 3 else "")
    return f"it holds {shown}, which is not on the list of what a file of a model may hold"
