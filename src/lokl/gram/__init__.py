"""Kernels and gates as one Gram matrix: rows, products and gradients inside a memory budget.

How one row comes about
-----------------------
Given are `n` training samples with `d` features, `m` kernels, and gates of shape (n, m, rank), the
rank being 1 unless gates are vectors. Wanted is row `j` of ``K = sum_i (h_i h_i') o K_i``, (n,).

1. Each kernel is taken apart into a *term*: ``k(x, z) = s(x) s(z) f(<x, z>, |x|^2, |z|^2)``. The
   *formula* ``f`` is applied to every entry by itself: the inner product, a power of it, a
   Gaussian, a tanh. The *scale* ``s`` normalises the kernel; it is 1 for most. A kernel that has
   no term (a Laplacian, a stored matrix) is one of the *others*: it is called as it is and added
   at the end.
2. A term looks at a *view*: some columns, each of which may be *stretched* by a factor of its own.
   Kernels of the same view are a *family* and share inner products: eleven kernels of one view
   cost one inner product for each pair of samples. A *plan* is the list of families and others,
   with the dtype in which all is computed. (`plan.py`)
3. The samples of a view are laid out once, (n, columns of the view). Where every kernel of the
   family is a Gaussian, they are *centred* first: the mean, the *offset*, is subtracted, which
   changes no distance and saves digits. The *layout* is the fastest of three: an array for BLAS; a
   CSR matrix; or *panels*, transposed pieces (n_panels, columns, 128 or 512), against which the
   entries of sparse rows are multiplied. (`layouts.py`)
4. The inner products of sample `j` with all samples are *dots*, (n,). With panels they are
   computed 128 or 512 at a time right before they are used, else for a block of rows at a time.
5. A family is compiled into a *program*: operation codes and their numbers, one entry a kernel. It
   runs over the dots in *tiles* of at most 512 columns, so that they stay in the nearest cache
   while every kernel passes over them: values of kernel `i`, times the factors of both samples,
   are added to the row. The *factor* of a sample, (m, rank, n) for all, is its gate times its
   scale. Where it is the same for all samples, as in every method with global weights, the product
   of both sides is one of the *weights* (m,) of the program and there are no factors.
   (`_mixing.py`)
6. The finished row goes into the *slab*, (capacity, n), of which every row is a *slot*. When it is
   full, rows that were not asked for the longest are overwritten. (`row_cache.py`)

Who holds what
--------------
`InnerProducts` holds the samples, their layouts and the memory, for a whole fit or a search over
kernels. `GatedGram` is one matrix on them: a plan and `Points`, that is samples with layouts,
scales and gates; it never changes, and other gates make another one. The slab belongs to the matrix
that asked last. Gates that divide the samples, each of which has its gates in one rank alone, make
a `BlockGram`: one such matrix for each rank, and nothing between them. `mixing` has what is
computed between two sets of points: blocks, products, sums apart for each kernel. `GatedKernel` is
the learned kernel for anybody's samples, `Expansion` a function ``sum_j k(x, x_j) a_j + b`` that
keeps only the points that have a coefficient.

The low-rank twin
-----------------
`LowRankProducts` and `LowRankGram` answer the same questions with features in the place of kernels:
``k_i(x, z) = <phi_i(x), phi_i(z)>`` nearly. Landmarks are chosen once, on all kernels together
(`landmarks.py`); a *feature map* (`feature_maps.py`) then turns samples into *columns*, kernel
values with the landmarks, and columns into features by a triangular matrix of each kernel. Where
features of all samples fit into the memory they are stored, else columns are computed tile by tile.
"""

from lokl.gram.gated_gram import GatedGram
from lokl.gram.gated_kernel import Expansion, GatedKernel
from lokl.gram.inner_products import InnerProducts
from lokl.gram.low_rank import LowRank, LowRankGram, LowRankKernel, LowRankProducts

__all__ = [
    "Expansion",
    "GatedGram",
    "GatedKernel",
    "InnerProducts",
    "LowRank",
    "LowRankGram",
    "LowRankKernel",
    "LowRankProducts",
]
