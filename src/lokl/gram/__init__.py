"""Kernels and gates as one Gram matrix: rows, products and gradients inside a memory budget.

How one row is computed
-----------------------
Given `n` training samples with `d` features, `m` kernels, and gates of shape (n, m, rank), where
the rank is 1 unless gates are vectors, compute row `j` of ``K = sum_i (h_i h_i') o K_i``, (n,).

1. Each kernel is written as a *term*: ``k(x, z) = s(x) s(z) f(<x, z>, |x|^2, |z|^2)``. The
   *formula* ``f`` is elementwise: the inner product, a power of it, a Gaussian, a tanh. The
   *normalizer* ``s`` is 1 for most kernels. A kernel without a term (a chi-squared kernel, a stored
   matrix) is one of the *others*: it is called as it is and added at the end. A Laplacian is a
   Gaussian of another inner product, the *overlap*, whose squared distances are L1 distances.
2. A term applies to a *view*: some columns, each of which may be multiplied by its own scale, and
   the inner product.
   Kernels of the same view are a *family* and share inner products: eleven kernels of one view
   cost one inner product for each pair of samples. A *plan* is the list of families and others,
   with the dtype of the matrix. (`plan.py`)
3. The samples of a view are laid out once, (n, columns of the view). If every kernel of the family
   is a Gaussian, they are *centred* first: the mean, the *offset*, is subtracted, which changes no
   distance and saves digits. The *layout* is the fastest of three: an array for BLAS; a CSR
   matrix; or *panels*, transposed pieces (n_panels, columns, 128 or 512), with which the entries
   of sparse rows are multiplied. (`layouts.py`)
4. The inner products of sample `j` with all samples are *dots*, (n,). With panels they are
   computed 128 or 512 at a time right before they are used, otherwise for a block of rows at a
   time.
5. A family is compiled into a *program*: operation codes and their numbers, one entry per kernel.
   It runs over the dots in *tiles* of at most 512 columns, which stay in the first-level cache
   while every kernel passes over them: values of kernel `i`, times the factors of both samples,
   are added to the row. The *factor* of a sample, (m, rank, n) for all, is its gate times its
   normalizer. If it is the same for all samples, as in every method with global weights, the
   product of both sides is one of the *weights* (m,) of the program, and there are no factors.
   (`_mixing.py`)
6. The finished row is stored in the *slab*, (capacity, n), in which every row has a *slot*. If it
   is full, the least recently used rows are overwritten. (`memory.py`)

Classes
-------
`InnerProducts` contains the samples, their layouts and the memory, for a whole fit or a search over
kernels. `GatedGram` is one matrix on them: a plan and `Points`, that is samples with layouts,
normalizers and gates. It never changes; other gates make another one. The slab contains rows of the
latest matrix. If every sample has its gates in one rank alone, the matrix is a `BlockGram`: one
matrix for each rank, and nothing between them. `mixing` computes blocks, products and sums between
two sets of points. `GatedKernel` is the learned kernel for any samples, `Expansion` a function
``sum_j k(x, x_j) a_j + b`` that stores only the points with a coefficient.

The low-rank twin
-----------------
`LowRankProducts` and `LowRankGram` have the same methods with features instead of kernels:
``k_i(x, z)`` is close to ``<phi_i(x), phi_i(z)>``. Landmarks are chosen once, for all kernels
together. A *feature map* (`feature_maps.py`) turns samples into *columns*, kernel values with the
landmarks, and columns into features by a triangular matrix for each kernel. If the features of all
samples fit the memory they are stored, otherwise columns are computed tile by tile.
"""

from typing import TYPE_CHECKING

from lokl._exports import lazy_exports

if TYPE_CHECKING:
    from lokl.gram.gated_gram import GatedGram as GatedGram
    from lokl.gram.gated_gram import InnerProducts as InnerProducts
    from lokl.gram.gated_kernel import Expansion as Expansion
    from lokl.gram.gated_kernel import GatedKernel as GatedKernel
    from lokl.gram.low_rank import LowRank as LowRank
    from lokl.gram.low_rank import LowRankGram as LowRankGram
    from lokl.gram.low_rank import LowRankProducts as LowRankProducts

__getattr__, __all__ = lazy_exports(__name__)
