"""sha256 of the contents of every known data set, decompressed, and joined where several.

The data sets that are known by name.
"""

import difflib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

SHA256 = {
    "a1a": "eb54c45f1bdb51286f803dd092eb8202b44637a858fc6c4e533a2d64a0d94b4e",
    "a1a.t": "b98244653c31ac5b151097866216831b962cb5a2857c91e8b276cdfcc4c44771",
    "a9a": "f5d5ffd8d865ff41328e7ee043e4b020816914ff6843ff15b98905ddbedce906",
    "a9a.t": "1f448a153f0320399a7e40836eb207655b0bde0f21fc941cc472193daa9f5de9",
    "australian": "d9ab76fad5193d511a5afa7cd3c7bf2288af4ddf6c9eb983058f6d1b0aa98ff2",
    "australian_scale": "86799bcc4dbcd41929a514fa181d1c1a40e01f009dee139d4141a194d7ecd9e3",
    "basehock": "f8a96af59d3f0894a7009a8beafddd7615d63e67462e5473bdeb4898795b21b7",
    "bbcsport": "98dbf2c405c132cc7e6558fd5da904626e7069915c510392e71baeaf4925d708",
    "breast-cancer": "bd160c9d1b68cc9a7a885f2c5715245a9736b0d0bd12fa5e8fb12a255d396c5e",
    "breast-cancer_scale": "3c90cd8f884810a0ff2eaf2cc7aabf09073f33c2dfcf113d826a13ca60b257ad",
    "breast_tcga": "999898e30b78a0756236142950824b4fe6d7a3dd5c7721e54855463786ebb02c",
    "covtype.libsvm.binary.scale": (
        "859809c092ca933e1a8cc1cfa15e33b56cb11651e4e0a5b52b702abc315a6c0f"
    ),
    "diabetes": "d7cb20146b738c50bce1c1d5dbea336ecb9cfff8c3529547e2610d3a27c25335",
    "diabetes_scale": "0c07eb4c49e7a8ffb9c9f25095ac3022df2ca85b0dcb7d294c3ddea69f392cba",
    "fourclass": "407b9c6377c8c0a19eac962059b0c8c019be7af5db99e84f9dcd7649a35e1178",
    "fourclass_scale": "e27b003cd53d3141f8266b7e1db0d43e69f2824cc94c1d885fb27c8f2145a511",
    "german.numer": "69ffe0c4ba0bd91f936986d7c070dfca7e22064bbd5ab8e1fb925d6c86024ec8",
    "german.numer_scale": "97637cc6b994bd3fa78999c771bc044bea7a0cdf91d43b6ecfd10f7e7c4ebc82",
    "heart": "f0437e4847e6293a20850ef3fa2a809a1e11250a5b8760b259510bb321652470",
    "heart_scale": "5defa0a4c4c5bdaf3f55ae3828310252e8565c13ee37ce279e0b86d82e7f4ce9",
    "ionosphere_scale": "c4f7fb384c95f758fbc92e06652b952cdf906e28707a5f24ab5b1d691d9296e3",
    "leaves": "4af6d9f6588a720df763580d273dc08014476ac5f64570b0bada8b63b9952f45",
    "liver-disorders": "d46ffd3a7a36f8c05cb6f23b44e4f6a125682c376cbfc8f34ec57528db174772",
    "liver-disorders_later5": "8981a5bd456ac2815358e4dc50554247c3904584edf2916064cdcbe547fd0aa9",
    "liver-disorders_scale": "61abdcd4577d5e47c6dd19db5d7e908e5078dd6632466e0aff2b7c7b824e84e9",
    "mfeat": "6092a69891afa22785bffd5a4348f52d49a764aa5d40751ec2c4dc0f6ed48a44",
    "mnist49.t10k": "b59f99e4ae14dd0983d54da1c0e6a14fed106499a122175635831555f9a42d16",
    "msrc": "3b3adfad0b4e484cef1c1ecd64ec887ddde9f7655ed638e2fee1f047ae2c9ff0",
    "mushrooms": "f39a4eb628dc61a7d43760815b061c9e497aa728ce1ad8bde57a09ef6043b538",
    "phishing": "0cf66ef36604c393da9359b2e5d894a2df8aee31fd184633cefa138add2ef08a",
    "prokaryotic": "20471598a8c819fb35e94f102cda4300a3b4f2cd185d3cbe0ea06e0349a7ed7c",
    "protein_fold": "07522212f7fab626684ab07b030b47902a5ae75d1b4215ec947e919dcfe05dcf",
    "reuters": "cf549b72a66d7418a639a940899993c052bab9ec868fd493451cf85cd0d81d14",
    "scene15": "52a71c6c675d5b0c1e07189778716bc52b972b17b58d8156c01422bcce2e4442",
    "skin_nonskin": "dc8999649592aae3164238a677a2977ee7e24ef57a2a1f3ab06f69a10f00d060",
    "sonar_scale": "5d820b62d9873f13b283738971b02aef67900fcd98b310c8e77eca3d0dc53daa",
    "splice": "eee33566cfe8988ec26122460cc712d66c5c5b79b966b259408e803addaa584d",
    "splice.t": "f40da7cfd17860f3f1a1bb7d118f8e86c306d232ca6ac6ddefbaaef266abaa03",
    "svmguide1": "2b9ab55b6236f62cee6b7739b52f9e7cb033771f39b9c22c1f1790d80ef14d7f",
    "svmguide1.t": "f9c2fd4c725172aeb4476fc1e2327d537f7fbc2f53f49dfd073f80efbe1ba8f7",
    "w8a": "6a9fa8fd5f524303240a5db07d4b3d4a51e8b7b4b20a914105d8e3e8c81640f2",
    "webkb": "a1a3e7c50dac79ade224d556e1ff371a190fbb56c174eadfe05bad74bcec52ea",
}


Classes = Mapping[Any, int | None]


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
    classes: Classes
    source: str
    licence: str
    format: str = "libsvm"
    files: tuple[str, ...] = ()
    sha256: str | None = None
    url: str | None = None
    published: bool = True
    views: tuple[str, ...] = ()


_WISCONSIN = "UCI Breast Cancer Wisconsin (Original)"
_INDIANS = "UCI Pima Indians Diabetes, withdrawn there"
_UCI = "CC BY 4.0"
_NONE = "none stated"
# Of sources whose licence is not that of the UCI repository.
_LICENCES = {
    "20 Newsgroups": _NONE,
    "Ho and Kleinberg 1996": _NONE,
    "Hsu, Chang and Lin 2003": _NONE,
    "MNIST": "CC BY-SA 3.0",
    "Platt 1998": _NONE,
    _INDIANS: "public domain, as far as known",
}
_PAGE = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/binary/"
_ENDINGS = {"covtype.libsvm.binary.scale": ".bz2", "gisette_scale": ".bz2"}
# The known file of a set: that of LIBSVM's page, one rebuilt from the source of that, or one that
# is not on the page.
_PUBLISHED, _REBUILT, _ELSEWHERE = range(3)
_SIGNS: Classes = {-1: None, 1: None}
_DIGITS = (178, 182, 177, 183, 181, 182, 181, 179, 174, 180)

# Part of scikit-learn: name, features, samples of the classes 0, 1, ..., source.
_BUNDLED: tuple[tuple[str, int, tuple[int, ...], str], ...] = (
    ("breast_cancer", 30, (212, 357), "UCI Breast Cancer Wisconsin (Diagnostic)"),
    ("digits", 64, _DIGITS, "UCI Optical Recognition of Digits"),
    ("wine", 13, (59, 71, 48), "UCI Wine"),
    ("iris", 4, (50, 50, 50), "Fisher 1936"),
)
_DIGIT_VIEWS = Record(
    "digit_views",
    sum(_DIGITS),
    182,
    dict(enumerate(_DIGITS)),
    "UCI Optical Recognition of Digits, described in four ways",
    _UCI,
    "scikit-learn",
    views=("pixels", "profiles", "spectrum", "edges"),
)
# In LIBSVM's format: name, samples, features, classes, source, which file is known.
_LIBSVM: tuple[tuple[str, int, int, Classes, str, int], ...] = (
    ("a1a", 1605, 119, {-1: 1210, 1: 395}, "UCI Adult", _PUBLISHED),
    ("a1a.t", 30956, 119, {-1: 23510, 1: 7446}, "UCI Adult", _PUBLISHED),
    ("a2a", 2265, 123, _SIGNS, "UCI Adult", _PUBLISHED),
    ("a3a", 3185, 123, _SIGNS, "UCI Adult", _PUBLISHED),
    ("a4a", 4781, 123, _SIGNS, "UCI Adult", _PUBLISHED),
    ("a5a", 6414, 123, _SIGNS, "UCI Adult", _PUBLISHED),
    ("a6a", 11220, 123, _SIGNS, "UCI Adult", _PUBLISHED),
    ("a7a", 16100, 123, _SIGNS, "UCI Adult", _PUBLISHED),
    ("a8a", 22696, 123, _SIGNS, "UCI Adult", _PUBLISHED),
    ("a9a", 32561, 123, {-1: 24720, 1: 7841}, "UCI Adult", _PUBLISHED),
    ("a9a.t", 16281, 123, {-1: 12435, 1: 3846}, "UCI Adult", _PUBLISHED),
    ("australian", 690, 14, {-1: 383, 1: 307}, "UCI Statlog Australian", _REBUILT),
    ("australian_scale", 690, 14, {-1: 383, 1: 307}, "UCI Statlog Australian", _REBUILT),
    ("basehock", 1993, 4862, {1: 994, 2: 999}, "20 Newsgroups", _ELSEWHERE),
    ("breast-cancer", 683, 10, {2: 444, 4: 239}, _WISCONSIN, _REBUILT),
    ("breast-cancer_scale", 683, 10, {2: 444, 4: 239}, _WISCONSIN, _REBUILT),
    ("covtype.libsvm.binary.scale", 581012, 54, {1: 297711, 2: 283301}, "UCI Covertype", _REBUILT),
    ("diabetes", 768, 8, {-1: 268, 1: 500}, _INDIANS, _REBUILT),
    ("diabetes_scale", 768, 8, {-1: 268, 1: 500}, _INDIANS, _PUBLISHED),
    ("fourclass", 862, 2, {-1: 555, 1: 307}, "Ho and Kleinberg 1996", _PUBLISHED),
    ("fourclass_scale", 862, 2, {-1: 555, 1: 307}, "Ho and Kleinberg 1996", _REBUILT),
    ("german.numer", 1000, 24, {-1: 700, 1: 300}, "UCI Statlog German Credit", _PUBLISHED),
    ("german.numer_scale", 1000, 24, {-1: 700, 1: 300}, "UCI Statlog German Credit", _REBUILT),
    ("gisette_scale", 6000, 5000, {-1: 3000, 1: 3000}, "UCI Gisette", _PUBLISHED),
    ("heart", 270, 13, {-1: 150, 1: 120}, "UCI Statlog Heart", _PUBLISHED),
    ("heart_scale", 270, 13, {-1: 150, 1: 120}, "UCI Statlog Heart", _PUBLISHED),
    ("ionosphere_scale", 351, 34, {-1: 126, 1: 225}, "UCI Ionosphere", _REBUILT),
    # LIBSVM's page now has another version under these names: 5 columns, another label, fewer rows.
    ("liver-disorders", 345, 6, {1: 145, 2: 200}, "UCI Liver Disorders", _ELSEWHERE),
    ("liver-disorders_scale", 345, 6, {1: 145, 2: 200}, "UCI Liver Disorders", _ELSEWHERE),
    ("liver-disorders_later5", 345, 5, {0: 190, 1: 155}, "UCI Liver Disorders", _ELSEWHERE),
    ("mnist49.t10k", 1991, 784, {-1: 1009, 1: 982}, "MNIST", _ELSEWHERE),
    ("mushrooms", 8124, 112, {1: 3916, 2: 4208}, "UCI Mushroom", _PUBLISHED),
    ("phishing", 11055, 68, {0: 4898, 1: 6157}, "UCI Phishing Websites", _REBUILT),
    ("skin_nonskin", 245057, 3, {1: 50859, 2: 194198}, "UCI Skin Segmentation", _REBUILT),
    ("sonar_scale", 208, 60, {-1: 111, 1: 97}, "UCI Sonar", _REBUILT),
    ("splice", 1000, 60, {-1: 483, 1: 517}, "UCI Splice Junctions", _PUBLISHED),
    ("splice.t", 2175, 60, {-1: 1044, 1: 1131}, "UCI Splice Junctions", _PUBLISHED),
    ("svmguide1", 3089, 4, {0: 1089, 1: 2000}, "Hsu, Chang and Lin 2003", _PUBLISHED),
    ("svmguide1.t", 4000, 4, {0: 2000, 1: 2000}, "Hsu, Chang and Lin 2003", _PUBLISHED),
    ("w8a", 49749, 300, {-1: 48270, 1: 1479}, "Platt 1998", _PUBLISHED),
)
# fmt: off
_FOLDS = (
    19, 16, 32, 15, 18, 15, 74, 21, 29, 13, 16, 32, 12, 13,
    16, 77, 23, 24, 40, 22, 17, 22, 18, 15, 15, 40, 40,
)
# Views in a file of MATLAB, which has no lasting address: name, file, features, samples of the
# classes 1, 2, ..., source, views.
_MATLAB: tuple[tuple[str, str, int, tuple[int, ...], str, str], ...] = (
    ("mfeat", "mfeat_Handwritten", 649, (200,) * 10, "UCI Multiple Features",
     "fac, fou, kar, mor, pix, zer"),
    ("protein_fold", "ProteinFold", 324, _FOLDS,
     "Ding and Dubchak 2001, Damoulas and Girolami 2008",
     ", ".join(f"view {k + 1}" for k in range(12))),
    ("webkb", "WebKB", 4840, (230, 821), "WebKB, course pages", "anchor, content"),
    ("msrc", "MSRC-v5", 1622, (30,) * 7, "Microsoft Research Cambridge, object images",
     "CM, HOG, GIST, LBP, CENTRIST"),
    ("prokaryotic", "Prokaryotic", 834, (313, 91, 35, 112), "Brbić et al. 2016",
     "gene repertoire, proteome composition, text"),
    ("scene15", "Scene15", 119,
     (241, 360, 328, 260, 308, 374, 410, 292, 356, 215, 216, 311, 210, 289, 315),
     "Lazebnik et al. 2006, scene images", "GIST, PHOG, LBP"),
    ("leaves", "100Leaves", 192, (16,) * 100, "UCI One-hundred plant species leaves",
     "shape, margin, texture"),
    ("bbcsport", "BBCSport", 6386, (62, 104, 193, 124, 61), "BBC Sport, Greene and Cunningham 2006",
     "segment 1, segment 2"),
    ("reuters", "Reuters-1200", 10000, (200,) * 6, "Reuters, Amini et al. 2009",
     ", ".join(f"language {k + 1}" for k in range(5))),
)
# fmt: on
_TCGA = Record(
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
)


def _records() -> Iterator[Record]:
    for name, d, counts, source in _BUNDLED:
        n, by_label = sum(counts), dict(enumerate(counts))
        yield Record(name, n, d, by_label, source, _UCI, "scikit-learn")
    yield _DIGIT_VIEWS
    for name, n, d, classes, source, known in _LIBSVM:
        licence = _LICENCES.get(source, _UCI)
        url = None if known == _ELSEWHERE else _PAGE + name + _ENDINGS.get(name, "")
        checksum, published = SHA256.get(name), known != _REBUILT
        yield Record(
            name, n, d, classes, source, licence, "libsvm", (name,), checksum, url, published
        )
    for name, file, d, counts, source, views in _MATLAB:
        n, by_label = sum(counts), dict(enumerate(counts, 1))
        licence = _UCI if source.startswith("UCI") else _NONE
        files, names = (f"multiview/{file}.mat",), tuple(views.split(", "))
        yield Record(name, n, d, by_label, source, licence, "mat", files, SHA256[name], views=names)
    yield _TCGA


RECORDS = {record.name: record for record in _records()}

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
