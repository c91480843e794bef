"""Kernel k-means: the geometry it minimises, weights as repeated rows, and its large-scale kin."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score

from lokl import CLMKLClassifier
from lokl._arrays import Samples
from lokl.base.training import Training
from lokl.kernels import RBF, Linear
from lokl.methods.clusters import exact_geometry, find_clusters, kernel_kmeans, landmark_geometry


def blobs(n=90, seed=0):
    rng = np.random.RandomState(seed)
    truth = rng.randint(3, size=n)
    centres = np.array([[0.0, 4.0], [4.0, 0.0], [-3.0, -3.0]])
    return centres[truth] + rng.normal(scale=0.6, size=(n, 2)), truth


def geometry_of(K):
    return exact_geometry(np.diag(K), lambda coef: K @ coef, lambda j: K[j])


def clusters_of(X, weight=None, sharpness=None, **settings):
    samples = Samples(X, X, weight=weight)
    kernels, rng = [Linear(), RBF(0.1)], np.random.RandomState(0)
    rows, names = np.arange(len(X)), ["line", "bump"]
    training = Training(samples, rows, rows, names, kernels, None, {}, kernels=kernels, rng=rng)
    found, distances = find_clusters(CLMKLClassifier(**settings), training, sharpness)
    np.testing.assert_allclose(found.shares(distances), found.memberships(X), atol=1e-6)
    return found


def test_a_linear_kernel_is_plain_k_means():
    X, _ = blobs()
    found = kernel_kmeans(geometry_of(X @ X.T), np.ones(len(X)), 3, np.random.RandomState(0))
    plain = KMeans(3, n_init=10, random_state=0).fit(X)
    assert adjusted_rand_score(found.labels, plain.labels_) == 1.0
    inertia = found.distances[np.arange(len(X)), found.labels].sum()
    assert inertia == pytest.approx(plain.inertia_)


@settings(max_examples=20)
@given(seed=st.integers(0, 1000), n=st.integers(3, 25), L=st.integers(1, 4))
def test_no_sample_is_nearer_to_another_centre(seed, n, L):
    rng = np.random.RandomState(seed)
    X = rng.normal(size=(n, 2))
    K = RBF(0.5)(X)
    found = kernel_kmeans(geometry_of(K), np.ones(n), min(L, n), rng)
    own = found.distances[np.arange(n), found.labels]
    assert (own <= found.distances.min(axis=1) + 1e-9).all()
    assert set(found.labels) == set(range(found.centres.shape[1]))
    # Distances by their definition.
    for g in range(found.centres.shape[1]):
        part = found.labels == g
        expected = np.diag(K) - 2 * K[:, part].mean(axis=1) + K[np.ix_(part, part)].mean()
        np.testing.assert_allclose(found.distances[:, g], np.maximum(expected, 0), atol=1e-9)


def test_weights_are_repeated_rows():
    X, _ = blobs(60)
    weight = np.random.RandomState(1).randint(1, 4, size=len(X)).astype(float)
    K = RBF(0.2)(X)
    repeated = np.repeat(np.arange(len(X)), weight.astype(int))
    for seed in range(5):
        one = kernel_kmeans(geometry_of(K), weight, 4, np.random.RandomState(seed))
        many = kernel_kmeans(
            geometry_of(K[np.ix_(repeated, repeated)]),
            np.ones(len(repeated)),
            4,
            np.random.RandomState(seed),
        )
        np.testing.assert_array_equal(one.labels[repeated], many.labels)


def test_all_samples_as_landmarks_are_exact():
    X, _ = blobs()
    K = RBF(0.2)(X)
    near = landmark_geometry(np.diag(K), K, np.arange(len(X)))
    exact = kernel_kmeans(geometry_of(K), np.ones(len(X)), 3, np.random.RandomState(0))
    found = kernel_kmeans(near, np.ones(len(X)), 3, np.random.RandomState(0))
    assert adjusted_rand_score(found.labels, exact.labels) == 1.0


@pytest.mark.parametrize("how", ["exact", "sample", "approximate"])
def test_every_way_finds_clear_clusters(how):
    X, truth = blobs(150)
    found = clusters_of(X, clustering=how, sample_size=50)
    assert adjusted_rand_score(found.assign(X), truth) > 0.95
    c = found.memberships(X)
    np.testing.assert_allclose(c.sum(axis=1), 1.0)
    assert (c.argmax(axis=1) == found.assign(X)).all()


def test_sharp_memberships_are_zero_or_one():
    X, _ = blobs()
    c = clusters_of(X, sharpness=np.inf).memberships(X)
    assert set(np.unique(c)) == {0.0, 1.0}


def test_fewer_distinct_samples_than_clusters():
    X = np.repeat(np.eye(2), 5, axis=0)
    with pytest.warns(UserWarning, match="only 2 distinct samples for 3 clusters"):
        found = clusters_of(X)
    assert found.n_clusters == 2
    with pytest.warns(UserWarning, match="only 1 distinct"):
        assert clusters_of(np.ones((4, 2))).n_clusters == 1


def test_too_many_samples_to_store_are_clustered_in_blocks(monkeypatch):
    X, _ = blobs()
    expected = clusters_of(X)
    monkeypatch.setattr("lokl.methods.clusters._STORED", 10)
    found = clusters_of(X, clustering="exact")
    np.testing.assert_allclose(found.memberships(X), expected.memberships(X))


def test_an_unknown_way_is_named():
    with pytest.raises(ValueError, match="'approximate', got 'fast'"):
        CLMKLClassifier(clustering="fast").fit(np.eye(4), [0, 1, 0, 1])
