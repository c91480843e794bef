"""
The same model on Dask
======================

:mod:`lokl.distributed` fits models to Dask arrays and data frames that do not fit into the memory
of one machine. With the same seed, the model is the one that :meth:`~lokl.RegionClassifier.fit`
finds in memory. This page uses Dask's threads; a cluster only needs a ``Client``.
"""

import dask
import dask.array as da
import matplotlib.pyplot as plt
import numpy as np

from lokl import RegionClassifier, UniformMKLClassifier, distributed
from lokl.kernels import RBF

# %%
# Blocks of rows
# --------------
# In practice the blocks come from files, for example by :func:`lokl.distributed.read`.

rng = np.random.default_rng(0)
X = rng.uniform(-3, 3, size=(8000, 2))
y = (np.sin(3 * X[:, 0]) + np.cos(3 * X[:, 1]) > 0).astype(int)
rows, labels = da.from_array(X, chunks=(1000, 2)), da.from_array(y, chunks=1000)

model = RegionClassifier(
    UniformMKLClassifier([RBF(4.0)], C=10), max_region_size=500, random_state=0
)
with dask.config.set(scheduler="threads", num_workers=2):
    fitted = distributed.fit(model, rows, labels)
    predicted = distributed.predict(fitted, rows).compute()
print("same predictions as in memory:", (predicted == model.fit(X, y).predict(X)).all())

# %%
# The regions
# -----------
# ``region`` returns the region of each sample. Each has its own SVM.

side = np.linspace(-3, 3, 240)
across, up = np.meshgrid(side, side)
grid = np.column_stack([across.ravel(), up.ravel()])
region = fitted.region(grid)
region = region[:, 0] if region.ndim == 2 else region
figure, axes = plt.subplots(1, 2, figsize=(8.6, 4), sharey=True)
shuffled = np.random.default_rng(1).permutation(region.max() + 1)
axes[0].pcolormesh(
    across, up, shuffled[region].reshape(across.shape), cmap="cividis", rasterized=True
)
axes[0].set(aspect="equal", title=f"{len(np.unique(region))} regions")
axes[1].pcolormesh(
    across,
    up,
    fitted.predict(grid).reshape(across.shape),
    cmap="PuOr",
    vmin=-1,
    vmax=2,
    rasterized=True,
)
axes[1].contour(across, up, np.sin(3 * across) + np.cos(3 * up), [0], colors="k", linewidths=1)
axes[1].set(aspect="equal", title="predicted class, and the true border")
plt.show()
