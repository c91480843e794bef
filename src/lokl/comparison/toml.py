"""Plain values as TOML, which Python reads but does not write."""

import json
import re
from collections.abc import Mapping
from typing import Any

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def as_toml(content: Mapping[str, Any], above: str = "") -> str:
    """Return tables of text, whole numbers, lists of them and tables again.

    Parameters
    ----------
    content : mapping
    above : str
        Name of the table that the content belongs to.
    """
    lines = [f"{_key(k)} = {_value(v)}" for k, v in content.items() if not isinstance(v, Mapping)]
    for name, inside in content.items():
        if isinstance(inside, Mapping):
            full = f"{above}.{_key(name)}" if above else _key(name)
            lines.append(f"\n[{full}]\n{as_toml(inside, full)}".rstrip("\n"))
    return "".join(f"{line}\n" for line in lines)


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else _value(name)


def _value(value: Any) -> str:
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_value, value))}]"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return str(value)
    # Strings of JSON are strings of TOML but for one character.
    return json.dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007f")
