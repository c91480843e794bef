"""Plain values as TOML, which Python reads but does not write.

What a comparison was asked: everything that decides its results, and nothing else.
"""

import hashlib
import json
import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from lokl import __version__
from lokl.tables import Table, TableError, read_table

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


CONFIG = "config.toml"
_HEAD = "# What was asked: `lokl compare config.toml` and `lokl fit config.toml` do it again.\n"
# Parts of the file, and the settings in each. Paths are relative to the file.
_PARTS = {
    "data": (
        "files",
        "on",
        "target",
        "groups",
        "views",
        "kinds",
        "task",
        "positive",
        "na",
        "delimiter",
    ),
    "comparison": ("folds", "repeats", "methods", "seed"),
}


@dataclass(frozen=True)
class Settings:
    """Tables, what is predicted, and how often it is tried.

    Attributes
    ----------
    files : tuple of str
        Paths, or the name of a data set.
    on, target, groups, views, kinds, task, positive, na, delimiter
        As for :func:`lokl.tables.read_table`.
    folds, repeats : int
        Parts of each division, and divisions.
    methods : tuple of str
        Names of candidates; all of the standard ones where there are none.
    seed : int
    """

    files: tuple[str, ...]
    on: str | None = None
    target: str | None = None
    groups: str | None = None
    views: Mapping[str, str] = field(default_factory=dict)
    kinds: Mapping[str, str] = field(default_factory=dict)
    task: str | None = None
    positive: str | None = None
    na: tuple[str, ...] = ()
    delimiter: str = ""
    folds: int = 5
    repeats: int = 2
    methods: tuple[str, ...] = ()
    seed: int = 0

    def read(self) -> Table:
        """Read the tables."""
        table = read_table(
            self.files,
            on=self.on,
            target=self.target,
            groups=self.groups,
            views=self.views,
            kinds=self.kinds,
            task=self.task,
            positive=self.positive,
            na=self.na,
            delimiter=self.delimiter,
        )
        if table.target is None:
            raise TableError("no target; name the column to predict with --target")
        return table

    def changed(self, **given: Any) -> "Settings":
        """Return settings with those in the place of others that are given: neither None nor empty.

        Zero is given, too.
        """
        known = {name: value for name, value in given.items() if value is not None}
        return replace(self, **{k: v for k, v in known.items() if v not in ((), {}, "")})

    def checksums(self) -> dict[str, str]:
        """Return the sha256 of every file, by its name; data sets have checksums of their own."""
        found: dict[str, str] = {}
        for path in self._paths():
            name = Path(path).name
            # Files of one name in two folders.
            name = f"{name} #{len(found)}" if name in found else name
            found[name] = _sha256(Path(path).expanduser())
        return found

    def _paths(self) -> Iterator[str]:
        for given in dict.fromkeys([*self.files, _file_of(self.target), _file_of(self.groups)]):
            if given and Path(given).expanduser().is_file():
                yield given

    def identity(self) -> dict[str, Any]:
        """Everything that two runs with the same results have in common, as plain values."""
        own = {name: _plain(getattr(self, name)) for name in _names()}
        # Tables are the same wherever they lie; their names are those of views.
        own["files"] = [Path(given).name for given in self.files]
        for name in ("target", "groups"):
            file, sign, column = (own[name] or "").rpartition(":")
            # Not asked whether the file is there: it may be gone since.
            own[name] = f"{Path(file).name}{sign}{column}" or None
        checks = {f"checksum of {name}": value for name, value in self.checksums().items()}
        return {**own, **checks, "version of lokl": __version__}

    def text(self, folder: Path, made: tuple[str, str] | None = None) -> str:
        """Return the file that asks the same again from a folder.

        `made` is who was chosen, and the checksum of the model's file.
        """
        told = {name: _plain(getattr(self, name)) for name in _names()}
        told["files"] = [_relative(given, folder) for given in self.files]
        for name in ("target", "groups"):
            file = _file_of(told[name])
            if file:
                told[name] = _relative(file, folder) + told[name][len(file) :]
        content = {
            part: {name: told[name] for name in names if told[name] not in (None, [], {}, "")}
            for part, names in _PARTS.items()
        }
        content["checksums"] = self.checksums()
        content["made"] = {"lokl": __version__}
        if made is not None:
            content["model"] = dict(zip(("candidate", "sha256"), made, strict=True))
        return _HEAD + as_toml(content)


def is_config(given: str) -> bool:
    """Whether what was given in the place of tables is a file of settings."""
    return given.endswith(".toml")


def load_settings(path: str) -> tuple[Settings, str | None]:
    """Read settings from a file, and the name of the candidate that was chosen, if any."""
    content = _content(path)
    given: dict[str, Any] = {}
    for part, names in _PARTS.items():
        values = content.get(part, {})
        unknown = [name for name in values if name not in names]
        if unknown:
            raise TableError(f"{path}: unknown setting {unknown[0]} of [{part}]")
        given.update(values)
    if not given.get("files"):
        raise TableError(f"{path} names no files: write files = [...] under [data]")
    try:
        settings = _from_plain(given, Path(path).parent)
    except (TypeError, ValueError) as reason:
        raise TableError(f"{path}: {reason}") from reason
    return settings, content.get("model", {}).get("candidate")


def stored_identity(path: Path) -> dict[str, Any]:
    """Return the identity of the comparison that wrote a file, whatever became of its tables."""
    settings, _ = load_settings(str(path))
    content = _content(str(path))
    own = {name: value for name, value in settings.identity().items() if name in _names()}
    checks = {f"checksum of {name}": v for name, v in content.get("checksums", {}).items()}
    return {**own, **checks, "version of lokl": content.get("made", {}).get("lokl")}


def stored_model(path: Path) -> tuple[str, str] | None:
    """Return which candidate a finished comparison chose, and the checksum of its model's file."""
    found = _content(str(path)).get("model", {}) if path.exists() else {}
    whole = {"candidate", "sha256"} <= found.keys()
    return (found["candidate"], found["sha256"]) if whole else None


def _content(path: str) -> dict[str, Any]:
    try:
        return tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as reason:
        raise TableError(f"{path} is no file of settings: {reason}") from reason
    except UnicodeDecodeError as reason:
        raise TableError(f"{path} is no file of settings: it is not text in UTF-8") from reason


def _from_plain(given: Mapping[str, Any], folder: Path) -> Settings:
    types = {field.name: field.type for field in fields(Settings)}
    found: dict[str, Any] = {}
    value: Any
    for name, value in given.items():
        kind: Any = types[name]
        wants_list, wants_table = "tuple" in str(kind), "Mapping" in str(kind)
        right: Any = list if wants_list else dict if wants_table else int if kind is int else str
        if not isinstance(value, right) or isinstance(value, bool):
            raise TypeError(f"setting {name} is {value!r}")
        found[name] = tuple(map(str, value)) if wants_list else value
    found["files"] = tuple(_resolved(path, folder) for path in found["files"])
    for name in ("target", "groups"):
        file = (found.get(name) or "").rpartition(":")[0]
        if file and (folder / file).is_file():
            found[name] = _resolved(file, folder) + found[name][len(file) :]
    return Settings(**found)


def _names() -> list[str]:
    return [name for names in _PARTS.values() for name in names]


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return list(value)
    return dict(value) if isinstance(value, Mapping) else value


def _file_of(given: str | None) -> str:
    """Return the file of ``FILE:COLUMN``, nothing where a column alone is given."""
    file = (given or "").rpartition(":")[0]
    return file if file and Path(file).expanduser().is_file() else ""


def _relative(path: str, folder: Path) -> str:
    if not Path(path).expanduser().exists():
        return path
    try:
        return Path(os.path.relpath(Path(path).expanduser(), folder)).as_posix()
    except ValueError:  # another drive of Windows
        return str(Path(path).absolute())


def _resolved(path: str, folder: Path) -> str:
    there = folder / path
    if not there.exists():
        return path
    return Path(os.path.relpath(there)).as_posix() if not Path(path).is_absolute() else path


def _sha256(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
