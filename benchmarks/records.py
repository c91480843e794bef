"""Records of finished work, from which an interrupted benchmark resumes."""

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from lokl.study import run_folder


class Records(run_folder.Records):
    """Records of one setting, in a file that other settings share.

    Parameters
    ----------
    path : Path or None
        None keeps no records after the run.
    names : tuple of str
        Names of the values that identify a piece of work.
    setting : dict
        Values that every record has. Records of other settings in the file are ignored.
    """

    def __init__(self, path: Path | None, names: tuple[str, ...], setting: dict[str, Any]):
        self.names = names
        self.setting = setting
        # Removed together with this object.
        self._folder = TemporaryDirectory() if path is None else None
        super().__init__(path if self._folder is None else Path(self._folder.name) / "records")

    def key_of(self, record: dict[str, Any]) -> str:
        return json.dumps([record[name] for name in (*self.names, *self.setting)])

    def check(self, record: Any) -> None:
        missing = [name for name in (*self.names, *self.setting) if name not in record]
        if missing:
            raise ValueError(f"missing: {', '.join(missing)}")

    def has(self, **wanted: Any) -> bool:
        """Return whether this work is finished."""
        return self.key_of({**wanted, **self.setting}) in self._records

    @property
    def found(self) -> list[dict[str, Any]]:
        """Return the records of this setting."""
        return [r for r in self if all(r[name] == value for name, value in self.setting.items())]

    def add(self, record: dict[str, Any]) -> None:
        super().add({**record, **self.setting})
