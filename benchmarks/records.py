"""Work that a long benchmark has finished, as lines of a file: a run that was cut off goes on."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass
class Records:
    """What is finished, in memory and in a file that only grows.

    Parameters
    ----------
    path : Path or None
        None keeps nothing beyond the run.
    setting : dict
        Values that every record has; records of other settings are in the file and not seen.
    """

    path: Path | None
    setting: dict[str, Any] = field(default_factory=dict)
    found: list[dict[str, Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.path is not None and self.path.exists():
            lines = self.path.read_text().splitlines()
            self.found = [record for record in map(json.loads, lines) if self._is_ours(record)]

    def _is_ours(self, record: dict[str, Any]) -> bool:
        return all(record.get(name) == value for name, value in self.setting.items())

    def has(self, **wanted: Any) -> bool:
        """Whether a record with these values is there."""
        return any(
            all(record[name] == value for name, value in wanted.items()) for record in self.found
        )

    def add(self, record: dict[str, Any]) -> None:
        record = {**record, **self.setting}
        self.found.append(record)
        if self.path is not None:
            with self.path.open("a") as stream:
                stream.write(json.dumps(record) + "\n")
