"""Settings of a comparison: everything that decides its results, in a TOML file.

The standard library reads TOML but does not write it, and `tomli-w` is not worth a dependency for
tables of text, whole numbers and lists.
"""

import hashlib
import json
import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from lokl import __version__
from lokl.tables import Table, TableError, read_table

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def as_toml(content: Mapping[str, Any], above: str = "") -> str:
    """Return text, whole numbers, lists of them and nested tables as TOML.

    Parameters
    ----------
    content : mapping
    above : str
        Name of the enclosing table.
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
    # JSON strings are TOML strings except for one character.
    return json.dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007f")


CONFIG = "config.toml"
_HEAD = "# Settings: `lokl compare config.toml` and `lokl fit config.toml` run them again.\n"
# Sections of the file, and the settings in each. Paths are relative to the file.
_SECTIONS = {
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
_NAMES = [name for names in _SECTIONS.values() for name in names]


@dataclass(frozen=True)
class Settings:
    """Tables, target and cross-validation of a comparison.

    Attributes
    ----------
    files : tuple of str
        Paths, or the name of a data set.
    on, target, groups, views, kinds, task, positive, na, delimiter
        As for :func:`lokl.tables.read_table`.
    folds, repeats : int
        Folds of the cross-validation, and how often it is repeated.
    methods : tuple of str
        Names of candidates; empty for the default ones.
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
        options: dict[str, Any] = {name: getattr(self, name) for name in _SECTIONS["data"][1:]}
        table = read_table(self.files, **options)
        if table.target is None:
            raise TableError("no target; name the column to predict with --target")
        return table

    def updated(self, **given: Any) -> "Settings":
        """Return settings with new values; None and empty values change nothing."""
        known = {name: value for name, value in given.items() if value is not None}
        return replace(self, **{k: v for k, v in known.items() if v not in ((), {}, "")})

    def checksums(self) -> dict[str, str]:
        """Return the SHA-256 of every file by name; data sets have checksums of their own."""
        checksums: dict[str, str] = {}
        for path in dict.fromkeys([*self.files, _file_of(self.target), _file_of(self.groups)]):
            if path and Path(path).expanduser().is_file():
                name = Path(path).name
                # Two folders may contain files of the same name.
                name = f"{name} #{len(checksums)}" if name in checksums else name
                checksums[name] = sha256(Path(path).expanduser())
        return checksums

    def identity(self) -> dict[str, Any]:
        """Return everything that two runs with the same results share, as plain values."""
        values = self._values()
        # Folders do not matter; names of files are names of views.
        values["files"] = [Path(path).name for path in self.files]
        for name in ("target", "groups"):
            file, colon, column = (values[name] or "").rpartition(":")
            # The file need not exist any more.
            values[name] = f"{Path(file).name}{colon}{column}" or None
        return {**values, **_named_checksums(self.checksums()), "version of lokl": __version__}

    def to_toml(self, folder: Path, model: tuple[str, str] | None = None) -> str:
        """Return the text of a settings file.

        Parameters
        ----------
        folder : Path
            Folder of the file; paths in it are relative to it.
        model : (str, str), optional
            Name of the chosen candidate, and checksum of the model's file.
        """
        values = self._values()
        values["files"] = [_relative(path, folder) for path in self.files]
        for name in ("target", "groups"):
            file = _file_of(values[name])
            if file:
                values[name] = _relative(file, folder) + values[name][len(file) :]
        content = {
            section: {n: values[n] for n in names if values[n] not in (None, [], {}, "")}
            for section, names in _SECTIONS.items()
        }
        content["checksums"] = self.checksums()
        content["made"] = {"lokl": __version__}
        if model is not None:
            content["model"] = dict(zip(("candidate", "sha256"), model, strict=True))
        return _HEAD + as_toml(content)

    def _values(self) -> dict[str, Any]:
        """Return settings as plain values of TOML."""
        values: dict[str, Any] = {}
        for name in _NAMES:
            value = getattr(self, name)
            values[name] = list(value) if isinstance(value, tuple) else value
        return values


def is_config(path: str) -> bool:
    """Return whether a path is a settings file rather than a table."""
    return path.endswith(".toml")


def load_settings(path: str) -> tuple[Settings, str | None]:
    """Return the settings in a file, and the name of the chosen candidate, if any."""
    content = _content(path)
    values: dict[str, Any] = {}
    for section, names in _SECTIONS.items():
        unknown = [name for name in content.get(section, {}) if name not in names]
        if unknown:
            raise TableError(f"{path}: unknown setting {unknown[0]} in [{section}]")
        values.update(content.get(section, {}))
    if not values.get("files"):
        raise TableError(f"{path} names no files: write files = [...] under [data]")
    try:
        settings = _from_values(values, Path(path).parent)
    except (TypeError, ValueError) as reason:
        raise TableError(f"{path}: {reason}") from reason
    return settings, content.get("model", {}).get("candidate")


def stored_identity(path: Path) -> dict[str, Any]:
    """Return the identity of the comparison that wrote a settings file.

    Checksums are read from the file, because the tables may have changed since.
    """
    settings, _ = load_settings(str(path))
    content = _content(str(path))
    values = {name: value for name, value in settings.identity().items() if name in _NAMES}
    checksums = _named_checksums(content.get("checksums", {}))
    return {**values, **checksums, "version of lokl": content.get("made", {}).get("lokl")}


def _named_checksums(checksums: Mapping[str, str]) -> dict[str, str]:
    return {f"checksum of {name}": value for name, value in checksums.items()}


def stored_model(path: Path) -> tuple[str, str] | None:
    """Return the candidate that a finished comparison chose, and the checksum of its model."""
    model = _content(str(path)).get("model", {}) if path.exists() else {}
    complete = {"candidate", "sha256"} <= model.keys()
    return (model["candidate"], model["sha256"]) if complete else None


def _content(path: str) -> dict[str, Any]:
    try:
        return tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as reason:
        raise TableError(f"{path} is not a settings file: {reason}") from reason
    except UnicodeDecodeError as reason:
        raise TableError(f"{path} is not a settings file: it is not text in UTF-8") from reason


def _from_values(values: Mapping[str, Any], folder: Path) -> Settings:
    types: dict[str, Any] = {field.name: field.type for field in fields(Settings)}
    given: dict[str, Any] = {}
    for name, value in values.items():
        kind = str(types[name])
        is_list = "tuple" in kind
        expected: Any = list if is_list else dict if "Mapping" in kind else str
        expected = int if types[name] is int else expected
        if not isinstance(value, expected) or isinstance(value, bool):
            raise TypeError(f"setting {name} is {value!r}, not of type {expected.__name__}")
        given[name] = tuple(map(str, value)) if is_list else value
    given["files"] = tuple(_resolved(path, folder) for path in given["files"])
    for name in ("target", "groups"):
        file = (given.get(name) or "").rpartition(":")[0]
        if file and (folder / file).is_file():
            given[name] = _resolved(file, folder) + given[name][len(file) :]
    return Settings(**given)


def _file_of(column: str | None) -> str:
    """Return the file of ``FILE:COLUMN``, empty if only a column is given."""
    file = (column or "").rpartition(":")[0]
    return file if file and Path(file).expanduser().is_file() else ""


def _relative(path: str, folder: Path) -> str:
    if not Path(path).expanduser().exists():
        return path
    try:
        return Path(os.path.relpath(Path(path).expanduser(), folder)).as_posix()
    except ValueError:  # another drive of Windows
        return str(Path(path).absolute())


def _resolved(path: str, folder: Path) -> str:
    if Path(path).is_absolute() or not (folder / path).exists():
        return path
    return Path(os.path.relpath(folder / path)).as_posix()


def sha256(path: Path) -> str:
    """Return the checksum of a file."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
