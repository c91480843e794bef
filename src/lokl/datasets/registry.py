"""The data sets that are known by name."""

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lokl.datasets.checksums import SHA256


@dataclass(frozen=True)
class Record:
    """What is known of a data set before it is read.

    Parameters
    ----------
    name : str
    n, d : int
        Samples and features; features that are zero in all rows count, too.
    classes : mapping of label to int or None
        Samples of each class, None where that is not known.
    source : str
        Where the data came from in the first place.
    licence : str
        As far as known.
    format : {"libsvm", "mat", "tcga", "scikit-learn"}
    files : tuple of str
        Paths in a folder of data sets, without the ending of a compression.
    sha256 : str or None
        Of the contents of all files, decompressed and joined; None where it is not known.
    url : str or None
        None where it cannot be downloaded.
    published : bool
        Whether `sha256` is that of the file behind the url. Otherwise it is that of a file which
        was rebuilt from its source, with the same values but not the same bytes.
    views : tuple of str
        Names of the views, in the order of their columns.
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


_PAGE = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/binary/"
_UCI = "CC BY 4.0"
_NONE = "none stated"


def _libsvm(
    name: str,
    n: int,
    d: int,
    classes: Mapping[Any, int | None],
    source: str,
    licence: str = _UCI,
    *,
    url: bool = True,
    published: bool = True,
    end: str = "",
) -> Record:
    """Record of a file in LIBSVM's format; `end` is its compression on LIBSVM's page."""
    return Record(
        name,
        n,
        d,
        classes,
        source,
        licence,
        files=(name,),
        sha256=SHA256.get(name),
        url=f"{_PAGE}{name}{end}" if url else None,
        published=published,
    )


def _adult(name: str, n: int, d: int, classes: Mapping[Any, int | None]) -> Record:
    return _libsvm(name, n, d, classes, "UCI Adult")


def _mat(
    name: str,
    file: str,
    n: int,
    d: int,
    classes: Mapping[Any, int | None],
    source: str,
    views: tuple[str, ...],
    licence: str = _NONE,
) -> Record:
    """Record of views in one MATLAB file; there is no lasting address to download it from."""
    return Record(
        name,
        n,
        d,
        classes,
        source,
        licence,
        format="mat",
        files=(f"multiview/{file}",),
        sha256=SHA256[name],
        views=views,
    )


def _bundled(name: str, n: int, d: int, classes: Mapping[Any, int | None], source: str) -> Record:
    return Record(name, n, d, classes, source, _UCI, format="scikit-learn")


_SIGNS: Mapping[Any, int | None] = {-1: None, 1: None}
# fmt: off
_FOLDS = (
    19, 16, 32, 15, 18, 15, 74, 21, 29, 13, 16, 32, 12, 13,
    16, 77, 23, 24, 40, 22, 17, 22, 18, 15, 15, 40, 40,
)
# fmt: on
_DIGITS = (178, 182, 177, 183, 181, 182, 181, 179, 174, 180)
_CANCER = {2: 444, 4: 239}
_PIMA = {-1: 268, 1: 500}
_GERMAN = {-1: 700, 1: 300}
_LIVER = {1: 145, 2: 200}
_AUSTRALIAN = {-1: 383, 1: 307}
_HEART = {-1: 150, 1: 120}
_FOURCLASS = {-1: 555, 1: 307}
_WISCONSIN = "UCI Breast Cancer Wisconsin (Original)"
_STATLOG = "UCI Statlog"
_INDIANS = "UCI Pima Indians Diabetes, withdrawn there"
_FREE = "public domain, as far as known"
_HO = "Ho and Kleinberg 1996"
_BUPA = "UCI Liver Disorders"

_TABLE = (
    _bundled(
        "breast_cancer", 569, 30, {0: 212, 1: 357}, "UCI Breast Cancer Wisconsin (Diagnostic)"
    ),
    _bundled("digits", 1797, 64, dict(enumerate(_DIGITS)), "UCI Optical Recognition of Digits"),
    _bundled("wine", 178, 13, {0: 59, 1: 71, 2: 48}, "UCI Wine"),
    _bundled("iris", 150, 4, {0: 50, 1: 50, 2: 50}, "Fisher 1936"),
    _adult("a1a", 1605, 119, {-1: 1210, 1: 395}),
    _adult("a1a.t", 30956, 119, {-1: 23510, 1: 7446}),
    _adult("a2a", 2265, 123, _SIGNS),
    _adult("a3a", 3185, 123, _SIGNS),
    _adult("a4a", 4781, 123, _SIGNS),
    _adult("a5a", 6414, 123, _SIGNS),
    _adult("a6a", 11220, 123, _SIGNS),
    _adult("a7a", 16100, 123, _SIGNS),
    _adult("a8a", 22696, 123, _SIGNS),
    _adult("a9a", 32561, 123, {-1: 24720, 1: 7841}),
    _adult("a9a.t", 16281, 123, {-1: 12435, 1: 3846}),
    _libsvm("australian", 690, 14, _AUSTRALIAN, f"{_STATLOG} Australian", published=False),
    _libsvm("australian_scale", 690, 14, _AUSTRALIAN, f"{_STATLOG} Australian", published=False),
    _libsvm("basehock", 1993, 4862, {1: 994, 2: 999}, "20 Newsgroups", _NONE, url=False),
    _libsvm("breast-cancer", 683, 10, _CANCER, _WISCONSIN, published=False),
    _libsvm("breast-cancer_scale", 683, 10, _CANCER, _WISCONSIN, published=False),
    _libsvm(
        "covtype.libsvm.binary.scale",
        581012,
        54,
        {1: 297711, 2: 283301},
        "UCI Covertype",
        published=False,
        end=".bz2",
    ),
    _libsvm("diabetes", 768, 8, _PIMA, _INDIANS, _FREE, published=False),
    _libsvm("diabetes_scale", 768, 8, _PIMA, _INDIANS, _FREE),
    _libsvm("fourclass", 862, 2, _FOURCLASS, _HO, _NONE),
    _libsvm("fourclass_scale", 862, 2, _FOURCLASS, _HO, _NONE, published=False),
    _libsvm("german.numer", 1000, 24, _GERMAN, f"{_STATLOG} German Credit"),
    _libsvm("german.numer_scale", 1000, 24, _GERMAN, f"{_STATLOG} German Credit", published=False),
    _libsvm("gisette_scale", 6000, 5000, {-1: 3000, 1: 3000}, "UCI Gisette", end=".bz2"),
    _libsvm("heart", 270, 13, _HEART, f"{_STATLOG} Heart"),
    _libsvm("heart_scale", 270, 13, _HEART, f"{_STATLOG} Heart"),
    _libsvm("ionosphere_scale", 351, 34, {-1: 126, 1: 225}, "UCI Ionosphere", published=False),
    # LIBSVM's page now has another version under these names: 5 columns, another label, fewer rows.
    _libsvm("liver-disorders", 345, 6, _LIVER, _BUPA, url=False),
    _libsvm("liver-disorders_scale", 345, 6, _LIVER, _BUPA, url=False),
    _libsvm("liver-disorders_later5", 345, 5, {0: 190, 1: 155}, _BUPA, url=False),
    _libsvm("mnist49.t10k", 1991, 784, {-1: 1009, 1: 982}, "MNIST", "CC BY-SA 3.0", url=False),
    _libsvm("mushrooms", 8124, 112, {1: 3916, 2: 4208}, "UCI Mushroom"),
    _libsvm("phishing", 11055, 68, {0: 4898, 1: 6157}, "UCI Phishing Websites", published=False),
    _libsvm(
        "skin_nonskin", 245057, 3, {1: 50859, 2: 194198}, "UCI Skin Segmentation", published=False
    ),
    _libsvm("sonar_scale", 208, 60, {-1: 111, 1: 97}, "UCI Sonar", published=False),
    _libsvm("splice", 1000, 60, {-1: 483, 1: 517}, "UCI Splice Junctions"),
    _libsvm("splice.t", 2175, 60, {-1: 1044, 1: 1131}, "UCI Splice Junctions"),
    _libsvm("svmguide1", 3089, 4, {0: 1089, 1: 2000}, "Hsu, Chang and Lin 2003", _NONE),
    _libsvm("svmguide1.t", 4000, 4, {0: 2000, 1: 2000}, "Hsu, Chang and Lin 2003", _NONE),
    _libsvm("w8a", 49749, 300, {-1: 48270, 1: 1479}, "Platt 1998", _NONE),
    _mat(
        "mfeat",
        "mfeat_Handwritten.mat",
        2000,
        649,
        {digit + 1: 200 for digit in range(10)},
        "UCI Multiple Features",
        ("fac", "fou", "kar", "mor", "pix", "zer"),
        _UCI,
    ),
    _mat(
        "protein_fold",
        "ProteinFold.mat",
        694,
        324,
        {k + 1: count for k, count in enumerate(_FOLDS)},
        "Ding and Dubchak 2001, Damoulas and Girolami 2008",
        tuple(f"view {k + 1}" for k in range(12)),
    ),
    _mat(
        "webkb",
        "WebKB.mat",
        1051,
        4840,
        {1: 230, 2: 821},
        "WebKB, course pages",
        ("anchor", "content"),
    ),
    _mat(
        "msrc",
        "MSRC-v5.mat",
        210,
        1622,
        {k + 1: 30 for k in range(7)},
        "Microsoft Research Cambridge, object images",
        ("CM", "HOG", "GIST", "LBP", "CENTRIST"),
    ),
    _mat(
        "prokaryotic",
        "Prokaryotic.mat",
        551,
        834,
        {1: 313, 2: 91, 3: 35, 4: 112},
        "Brbić et al. 2016",
        ("gene repertoire", "proteome composition", "text"),
    ),
    Record(
        "breast_tcga",
        150,
        526,
        {"Basal": 45, "Her2": 30, "LumA": 75},
        "The Cancer Genome Atlas, from mixOmics",
        "open access; mixOmics is GPL (>= 2)",
        format="tcga",
        # In the order in which the checksum joins them. The test part has no proteins.
        files=tuple(
            f"multiview/breast_tcga/{part}_{half}.csv"
            for half in ("train", "test")
            for part in ("mrna", "mirna", "protein", "subtype")
            if (part, half) != ("protein", "test")
        ),
        sha256=SHA256["breast_tcga"],
        views=("mrna", "mirna", "protein"),
    ),
)

RECORDS = {record.name: record for record in _TABLE}

# Other names, of which each can mean only one set.
ALIASES = {"adult": "a9a", "gisette": "gisette_scale"}


def available() -> list[str]:
    """Return the names that `load` knows, whether or not the data is on this machine.

    Examples
    --------
    >>> from lokl.datasets import available
    >>> "a9a" in available()
    True
    """
    return list(RECORDS)


def info(name: str) -> Record:
    """Return size, classes, source and licence of a data set.

    Examples
    --------
    >>> from lokl.datasets import info
    >>> info("a9a").n, info("a9a").d
    (32561, 123)
    """
    known = ALIASES.get(name, name)
    if known not in RECORDS:
        near = difflib.get_close_matches(str(name), [*RECORDS, *ALIASES], n=3)
        hint = f"did you mean {' or '.join(near)}? " if near else ""
        raise ValueError(
            f"unknown data set {name!r}; {hint}lokl.datasets.available() and "
            "`lokl datasets list` show all names"
        )
    return RECORDS[known]
