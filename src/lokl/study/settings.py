"""Settings of a comparison: everything that decides its results, in a TOML file.

The standard library reads TOML but does not write it, and `tomli-w` is not worth a dependency for
tables of text, whole numbers and lists.
"""

import hashlib
import json
import os
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, get_origin, get_type_hints

from lokl import __version__
from lokl._text import suggestion
from lokl.datasets.readers import as_text, split_sheet
from lokl.tables import Table, TableError, read_table
from lokl.tables.learning import preparation_for, target_of
from lokl.tables.table import ADJUST, MIN_SET, read_new

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
    """Return a key of TOML, in quotes if necessary."""
    return name if _BARE.fullmatch(name) else _value(name)


def _value(value: Any) -> str:
    """Return a value as TOML, which is as JSON except for one character."""
    return json.dumps(value, ensure_ascii=False, default=str).replace("\x7f", "\\u007f")


CONFIG = "config.toml"
_HEAD = "# Settings: `lokl compare config.toml` and `lokl fit config.toml` run them again.\n"
# Which of the models that are not clearly worse than the best is chosen: the one that explains
# most, the best, or the simplest.
GOALS = ("explain", "accuracy", "simple")
# Values that stand for a setting left out.
_NOTHING: tuple[Any, ...] = (None, "", [], (), {})


@dataclass(frozen=True)
class Settings:
    """Tables, target and cross-validation of a comparison.

    Attributes
    ----------
    files : tuple of str
        Paths, or the name of a data set.
    on, target, time, event, groups, cohort, views, kinds, task, positive, na, delimiter, \
    covariates, covariates_as, gene_sets, gene_sets_size, gene_sets_rest
        As for :func:`lokl.tables.read_table`.
    leave_one_group_out : str or None
        Column of groups, each of which is held out in turn.
    test : tuple of str
        Files of a test cohort, which has no part in any choice.
    folds, repeats : int
        Folds of the cross-validation, and how often it is repeated.
    methods : tuple of str
        Names of candidates; empty for the default ones.
    seed : int
    goal : {"explain", "accuracy", "simple"}
        Which candidate is chosen; see :attr:`Results.chosen`.
    score : str or None
        Name of the score by which candidates are compared; accuracy, R squared or concordance if
        not given.
    permutations : int
        Permutations of the target on which the chosen candidate is fitted for a p-value.

    See Also
    --------
    lokl.study.Comparison : Runs the comparison.
    lokl.tables.read_table : Reads the tables.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from sklearn.datasets import load_iris
    >>> from lokl.study import Settings
    >>> frame = load_iris(as_frame=True).frame.iloc[::3]
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "iris.csv"
    ...     frame.to_csv(path, index=False)
    ...     settings = Settings((str(path),), target="target", folds=2, methods=("uniform mix",))
    ...     table = settings.read()
    >>> settings.folds, table.task
    (2, 'classification')
    """

    files: tuple[str, ...]
    on: str | None = None
    target: str | None = None
    time: str | None = None
    event: str | None = None
    groups: str | None = None
    cohort: str | None = None
    leave_one_group_out: str | None = None
    test: tuple[str, ...] = ()
    views: Mapping[str, str] = field(default_factory=dict)
    kinds: Mapping[str, str] = field(default_factory=dict)
    task: str | None = None
    positive: str | None = None
    na: tuple[str, ...] = ()
    delimiter: str = ""
    covariates: tuple[str, ...] = ()
    covariates_as: str = ADJUST
    gene_sets: str | None = None
    gene_sets_size: int = MIN_SET
    gene_sets_rest: str | None = None
    folds: int = 5
    repeats: int = 2
    methods: tuple[str, ...] = ()
    seed: int = 0
    goal: str = GOALS[0]
    score: str | None = None
    permutations: int = 0

    def __post_init__(self) -> None:
        if self.goal not in GOALS:
            hint = suggestion(self.goal, GOALS) or f"; use one of {', '.join(GOALS)}"
            raise TableError(f"unknown goal {self.goal!r}{hint}")
        if self.groups and self.leave_one_group_out:
            raise TableError("pass --groups or --leave-one-group-out, not both")
        if self.cohort and self.test:
            raise TableError("pass --test or --test-column, not both")

    def read(self) -> Table:
        """Read the tables."""
        names = [name for name in _SECTIONS["data"][1:] if name not in _NOT_READ]
        options: dict[str, Any] = {name: getattr(self, name) for name in names}
        options["groups"] = self.groups or self.leave_one_group_out
        table = read_table(self.files, **options)
        if table.target is None:
            raise TableError(
                "no target; name the column to predict with --target, or --time and --event"
            )
        return table

    def read_cohorts(self) -> tuple[Table, Table | None]:
        """Read the tables to learn from, and those of the test cohort if there is one."""
        table = self.read()
        if table.cohort is not None:
            is_test = table.cohort.to_numpy()
            return table.take(~is_test), table.take(is_test)
        if not self.test:
            return table, None
        schema = preparation_for(table).fit(table.frame, target_of(table))
        cohort = read_new(
            self.test,
            schema,
            on=self.on,
            na=self.na,
            delimiter=self.delimiter,
            target=self.time or self.target,
            event=self.event,
        )
        known = None if cohort.target is None else cohort.target.notna().to_numpy()
        if known is None or not known.any():
            raise TableError(
                f"the target of the samples in {self.test[0]} is unknown; see --target"
            )
        shared = sorted(set(cohort.ids) & set(table.ids))
        if self.on is not None and shared:
            raise TableError(
                f"{len(shared)} samples, such as {shared[0]}, are in --test and in the other tables"
            )
        return table, cohort.take(known)

    def updated(self, **given: Any) -> "Settings":
        """Return settings with new values; None and empty values change nothing."""
        new = {name: value for name, value in given.items() if value not in _NOTHING}
        return replace(self, **new)

    def checksums(self) -> dict[str, str]:
        """Return the SHA-256 of every file by name; data sets have checksums of their own."""
        columns = [*(getattr(self, name) for name in _COLUMNS), *self.covariates]
        files = [*self.files, *self.test, *(c.rpartition(":")[0] for c in columns if c)]
        files += [self.gene_sets] if self.gene_sets else []
        checksums: dict[str, str] = {}
        for path in dict.fromkeys(split_sheet(given)[0] for given in files):
            if path.is_file():
                # Two folders may contain files of the same name.
                name = f"{path.name} #{len(checksums)}" if path.name in checksums else path.name
                checksums[name] = sha256(path)
        return checksums

    def with_paths(self, change: Callable[[str], str]) -> "Settings":
        """Return settings with other paths of files, also of the file in ``FILE:COLUMN``.

        Parameters
        ----------
        change : callable
            Takes a path and returns another one.
        """

        def change_file(given: str) -> str:
            path, sheet = split_sheet(given)
            return f"{change(str(path))}:{sheet}" if sheet else change(given)

        changed: dict[str, Any] = {
            name: tuple(map(change_file, getattr(self, name))) for name in ("files", "test")
        }
        if self.gene_sets:
            changed["gene_sets"] = change(self.gene_sets)

        def change_column(given: str) -> str:
            file, colon, column = given.rpartition(":")
            return f"{change_file(file)}{colon}{column}" if file else given

        for name in _COLUMNS:
            if getattr(self, name):
                changed[name] = change_column(getattr(self, name))
        changed["covariates"] = tuple(map(change_column, self.covariates))
        return replace(self, **changed)

    def stored(self, model: Mapping[str, str] | None = None) -> "StoredSettings":
        """Return the content of the settings file, with the chosen model if there is one."""
        return StoredSettings(self, self.checksums(), __version__, model or {})


# Settings that may change in a folder: they only concern what is made of the fits.
_AFTER_FITS = {"goal", "score", "permutations"}
# Settings that may name a file and a column, and settings of the data that `read_table` lacks.
_COLUMNS = ("target", "time", "event", "groups", "cohort", "leave_one_group_out")
_NOT_READ = ("leave_one_group_out", "test")
# Sections of the file, and the settings in each.
_COMPARISON = ("folds", "repeats", "methods", "seed", "goal", "score", "permutations")
_SECTIONS: Mapping[str, Sequence[str]] = {
    "data": [field.name for field in fields(Settings) if field.name not in _COMPARISON],
    "comparison": _COMPARISON,
}


@dataclass(frozen=True)
class StoredSettings:
    """Content of a settings file.

    Attributes
    ----------
    settings : Settings
    checksums : mapping of str to str
        SHA-256 of every file by name; the tables may have changed since.
    version : str or None
        Version of lokl.
    model : mapping of str to str
        Name of the chosen ``candidate``, and ``sha256`` of the model's file; empty if there is no
        model.
    """

    settings: Settings
    checksums: Mapping[str, str]
    version: str | None
    model: Mapping[str, str]

    @property
    def identity(self) -> dict[str, Any]:
        """Everything that two runs with the same fits share, by name.

        Folders of files do not matter, but their names are names of views.
        """
        settings = self.settings.with_paths(lambda path: Path(path).name)
        # Lists, as a settings file shows them.
        values = {
            k: list(v) if isinstance(v, tuple) else v
            for k, v in vars(settings).items()
            if k not in _AFTER_FITS
        }
        checksums = {f"checksum of {name}": value for name, value in self.checksums.items()}
        return {**values, **checksums, "version of lokl": self.version}

    def to_toml(self, folder: Path) -> str:
        """Return the text of a file in a folder; its paths are relative to the folder."""
        values = vars(self.settings.with_paths(lambda path: _relative(path, folder)))
        content: dict[str, Any] = {
            section: {name: values[name] for name in names if values[name] not in _NOTHING}
            for section, names in _SECTIONS.items()
        }
        content |= {"checksums": self.checksums, "made": {"lokl": self.version}}
        text = _HEAD + as_toml({**content, "model": self.model} if self.model else content)
        if text != as_text(text):
            paths = [path for path in self.settings.files if path != as_text(path)]
            raise TableError(
                f"{as_text(paths[0] if paths else str(folder))}: the name is not text in the "
                "encoding of the system, so that settings cannot name it; rename the file, or run "
                "under an UTF-8 locale"
            )
        return text


def load_settings(path: str) -> StoredSettings:
    """Return the content of a settings file.

    Parameters
    ----------
    path : str
        Paths in the file are relative to its folder; those of the result are relative to the
        working directory.

    Raises
    ------
    TableError
        If the file is damaged, or has unknown or wrong settings.
    """
    try:
        content = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as reason:
        raise TableError(f"{path} is not a settings file: {reason}") from reason
    except UnicodeDecodeError as reason:
        raise TableError(f"{path} is not a settings file: it is not text in UTF-8") from reason
    values: dict[str, Any] = {}
    for section, names in _SECTIONS.items():
        unknown = [name for name in content.get(section, {}) if name not in names]
        if unknown:
            hint = suggestion(unknown[0], names)
            raise TableError(f"{path}: unknown setting {unknown[0]} in [{section}]{hint}")
        values.update(content.get(section, {}))
    if not values.get("files"):
        raise TableError(f"{path} names no files: write files = [...] under [data]")
    settings = _checked_settings(path, values)
    return StoredSettings(
        settings.with_paths(lambda name: _resolved(name, Path(path).parent)),
        content.get("checksums", {}),
        content.get("made", {}).get("lokl"),
        content.get("model", {}),
    )


def _checked_settings(path: str, values: Mapping[str, Any]) -> Settings:
    """Return the settings in a file, or raise a `TableError` that names one of the wrong type."""
    hints = get_type_hints(Settings)
    for name, value in values.items():
        # Text may also be None, which no file contains.
        kind = get_origin(hints[name]) or hints[name]
        expected: Any = {tuple: list, Mapping: dict, int: int}.get(kind, str)
        if type(value) is not expected:
            raise TableError(
                f"{path}: setting {name} is {value!r}, not of type {expected.__name__}"
            )
    lists = {k: tuple(map(str, v)) for k, v in values.items() if isinstance(v, list)}
    return Settings(**{**values, **lists})


def _relative(path: str, folder: Path) -> str:
    """Return an existing path relative to a folder; other names are unchanged."""
    if not Path(path).expanduser().exists():
        return path
    try:
        return Path(os.path.relpath(Path(path).expanduser(), folder)).as_posix()
    except ValueError:  # another drive of Windows
        return str(Path(path).absolute())


def _resolved(path: str, folder: Path) -> str:
    """Return a path that is relative to a folder as a path from here."""
    if Path(path).is_absolute() or not (folder / path).exists():
        return path
    return Path(os.path.relpath(folder / path)).as_posix()


def sha256(path: Path) -> str:
    """Return the checksum of a file."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
