"""Work that a long benchmark has finished: a run that was cut off goes on."""

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
        None keeps nothing beyond the run.
    names : tuple of str
        What tells the work of two records apart.
    setting : dict
        Values that every record has; records of other settings are in the file and not seen.
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
        lacking = [name for name in (*self.names, *self.setting) if name not in record]
        if lacking:
            raise ValueError(f"missing: {', '.join(lacking)}")

    def has(self, **wanted: Any) -> bool:
        """Whether this work is finished."""
        return self.get(self.key_of({**wanted, **self.setting})) is not None

    @property
    def found(self) -> list[dict[str, Any]]:
        """Records of this setting."""
        return [r for r in self if all(r[name] == value for name, value in self.setting.items())]

    def add(self, record: dict[str, Any]) -> None:
        super().add({**record, **self.setting})
