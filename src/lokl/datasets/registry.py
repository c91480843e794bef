"""Registry of the data sets that are available by name."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from lokl._text import suggestion

ALIASES = {"adult": "a9a", "gisette": "gisette_scale"}


@dataclass(frozen=True)
class DatasetInfo:
    """Description of a data set.

    Parameters
    ----------
    name : str
        Name in `load`.
    n, d : int
        Number of samples and features, including features that are zero in all rows.
    classes : mapping of label to int or None
        Samples of each class, None if not known.
    source : str
        Origin of the data.
    licence : str
        As far as known.
    format : {"libsvm", "mat", "tcga", "scikit-learn"}
    files : tuple of str
        Paths in a folder of data sets, without the ending of a compression. The checksum joins
        them in this order.
    sha256 : str or None
        Checksum of the contents of all files, decompressed and joined; None if not known.
    url : str or None
        None if the data set cannot be downloaded.
    published : bool
        Whether `sha256` belongs to the file at `url`. Otherwise it belongs to a file that was
        rebuilt from its source, with the same values but not the same bytes.
    views : tuple of str
        Names of the views, in the order of their columns.

    See Also
    --------
    lokl.datasets.info : Returns it.

    Examples
    --------
    >>> from lokl.datasets import info
    >>> wine = info("wine")
    >>> wine.n, wine.d, wine.classes
    (178, 13, {0: 59, 1: 71, 2: 48})
    """

    name: str
    n: int
    d: int
    classes: Mapping[Any, int | None]
    source: str
    licence: str
    format: str = "libsvm"
    files: tuple[str, ...] = ()
    sha256: str | None = None
    url: str | None = None
    published: bool = True
    views: tuple[str, ...] = ()


def _records() -> Iterator[DatasetInfo]:
    """Parse ``registry.json``; classes are pairs, because keys in JSON are text."""
    text = files("lokl.datasets").joinpath("registry.json").read_text(encoding="utf-8")
    for fields in json.loads(text):
        classes: dict[Any, int | None] = dict(fields.pop("classes"))
        names, views = tuple(fields.pop("files", ())), tuple(fields.pop("views", ()))
        yield DatasetInfo(**fields, classes=classes, files=names, views=views)


RECORDS = {record.name: record for record in _records()}


def available() -> list[str]:
    """Return the names that `load` accepts, whether or not the data is on this machine.

    Returns
    -------
    names : list of str
        In alphabetical order.

    See Also
    --------
    lokl.datasets.info : Size and licence.
    lokl.datasets.load : Loads one of them.

    Examples
    --------
    >>> from lokl.datasets import available
    >>> available()[:3]
    ['breast_cancer', 'digits', 'wine']
    """
    return list(RECORDS)


def info(name: str) -> DatasetInfo:
    """Return size, classes, source and licence of a data set.

    Parameters
    ----------
    name : str
        One of `available()`.

    Returns
    -------
    about : DatasetInfo
        Description of the data set.

    See Also
    --------
    lokl.datasets.available : Names.
    lokl.datasets.load : Loads a data set.

    Examples
    --------
    >>> from lokl.datasets import info
    >>> info("a9a").n, info("a9a").d
    (32561, 123)
    """
    record = RECORDS.get(ALIASES.get(name, name))
    if record is None:
        hint = suggestion(str(name), [*RECORDS, *ALIASES])
        raise ValueError(
            f"unknown data set {name!r}{hint or ';'} lokl.datasets.available() and "
            "`lokl datasets list` show all names"
        )
    return record
