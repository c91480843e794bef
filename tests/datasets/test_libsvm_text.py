"""What scikit-learn writes, the reader reads."""

import io
import tempfile
from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import sparse
from sklearn.datasets import dump_svmlight_file

from lokl.datasets import read

values = st.floats(-1e12, 1e12, allow_nan=False) | st.just(0.0)


@given(
    X=hnp.arrays(float, hnp.array_shapes(min_dims=2, max_dims=2, max_side=8), elements=values),
    seed=st.integers(0, 99),
    as_csr=st.booleans(),
    extra=st.integers(0, 3),
    block_size=st.integers(1, 200),
)
def test_round_trip(X, seed, as_csr, extra, block_size):
    y = np.random.RandomState(seed).randint(-1, 3, size=len(X))
    text = io.BytesIO()
    dump_svmlight_file(sparse.csr_matrix(X) if as_csr else X, y, text, zero_based=False)
    shape = (len(X), X.shape[1] + extra)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "text")
        path.write_bytes(text.getvalue())
        found = read(path, n_features=shape[1], sparse=as_csr, block_size=block_size)
    assert sparse.issparse(found.data) == as_csr
    assert found.data.shape == shape
    data = found.data.toarray() if as_csr else found.data
    # Sixteen digits are written.
    np.testing.assert_allclose(data[:, : X.shape[1]], X, rtol=1e-15)
    np.testing.assert_array_equal(found.target, y)
