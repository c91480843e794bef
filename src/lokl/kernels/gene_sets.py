"""Kernels of gene sets: one for each named set of columns, from files in GMT format."""

import gzip
from collections.abc import Iterable, Mapping
from os import PathLike
from pathlib import Path
from typing import Any

from sklearn.base import clone

from lokl.kernels.base import Kernel
from lokl.kernels.columns import column_names


def read_gmt(path: str | PathLike[str]) -> dict[str, list[str]]:
    r"""Read gene sets from a file in GMT format.

    Parameters
    ----------
    path : str or path
        One line for each set, separated by tabs: name, description, genes. A file that ends in .gz
        is compressed.

    Returns
    -------
    sets : dict of str to list of str
        Genes of each set, each gene once.

    See Also
    --------
    per_gene_set : Kernels on the genes of each set.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from lokl.kernels import read_gmt
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "sets.gmt"
    ...     _ = path.write_text("repair\tDNA repair\tBRCA1\tBRCA2\tATM\n")
    ...     sets = read_gmt(path)
    >>> sets
    {'repair': ['BRCA1', 'BRCA2', 'ATM']}
    """
    path = Path(path)
    content = path.read_bytes()
    text = (gzip.decompress(content) if path.suffix == ".gz" else content).decode("utf-8-sig")
    sets: dict[str, list[str]] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        name, *rest = (field.strip() for field in line.split("\t"))
        genes = list(dict.fromkeys(gene for gene in rest[1:] if gene))
        if not name or not genes:
            raise ValueError(
                f"{path.name}, line {number}: expected a name, a description and genes, separated "
                f"by tabs, got {line[:60]!r}"
            )
        if name in sets:
            raise ValueError(f"{path.name}, line {number}: duplicate gene set {name!r}; rename one")
        sets[name] = genes
    if not sets:
        raise ValueError(f"{path.name} has no gene sets")
    return sets


def per_gene_set(
    kernel: Kernel, columns: Any, sets: Mapping[str, Iterable[str]], min_size: int = 5
) -> dict[str, Kernel]:
    """Return one copy of `kernel` for each gene set, on the columns of its genes.

    Parameters
    ----------
    kernel : Kernel
        Kernel to copy.
    columns : data frame or sequence of str
        Samples whose columns are genes, or their names in order. Columns with the same name all
        belong to the sets of their gene.
    sets : mapping of str to iterable of str
        Genes of each set, for example from :func:`read_gmt`. Genes without a column are left out.
    min_size : int, default=5
        Sets with fewer columns are left out.

    Returns
    -------
    kernels : dict of str to Kernel
        By name of the set, on positions of columns.

    See Also
    --------
    read_gmt : Reads gene sets from a file.
    lokl.kernels.per_view : One copy of a kernel for each view.

    Examples
    --------
    >>> from lokl.kernels import RBF, per_gene_set
    >>> sets = {"repair": ["BRCA1", "BRCA2", "ATM"], "growth": ["EGFR", "ERBB2", "MYC"]}
    >>> kernels = per_gene_set(RBF(), ["ATM", "BRCA1", "BRCA2", "EGFR"], sets, min_size=2)
    >>> {name: kernel.columns for name, kernel in kernels.items()}
    {'repair': [0, 1, 2]}
    """
    positions = match_sets(columns, sets, min_size)
    return {name: clone(kernel).on(found) for name, found in positions.items()}


def match_sets(
    columns: Any, sets: Mapping[str, Iterable[str]], min_size: int = 5
) -> dict[str, list[int]]:
    """Return the positions of the columns of each gene set that has at least `min_size` of them.

    The parameters are those of :func:`per_gene_set`.
    """
    if min_size < 1:
        raise ValueError(f"min_size must be 1 or more, got {min_size!r}")
    names = column_names(columns) or [str(name) for name in columns]
    positions: dict[str, list[int]] = {}
    for position, name in enumerate(names):
        positions.setdefault(name, []).append(position)
    found = {
        str(name): sorted({c for gene in genes for c in positions.get(str(gene), ())})
        for name, genes in sets.items()
    }
    matched = {name: own for name, own in found.items() if len(own) >= min_size}
    if not matched:
        examples = ", ".join(names[:3])
        raise ValueError(
            f"none of {len(sets)} gene sets has {min_size} of the {len(names)} columns, such as "
            f"{examples}; use the same kind of gene names in both, or lower min_size"
        )
    return matched
