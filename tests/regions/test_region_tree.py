"""Laws of the tree that divides samples into regions."""

import pickle
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from lokl.regions import tree as region_tree
from lokl.regions.tree import TreeGrower, attach_branches, project


def grow_tree(X, max_size, **settings):
    return TreeGrower(max_size, **settings).grow(X)


def cloud(seed, n, d, repeated=False):
    X = np.random.RandomState(seed).normal(size=(n, d))
    return np.round(X) if repeated else X


cases = given(
    seed=st.integers(0, 2**16),
    n=st.integers(1, 300),
    d=st.integers(1, 7),
    max_size=st.integers(2, 60),
    overlap=st.sampled_from([0.0, 0.1, 0.3]),
    repeated=st.booleans(),
)


@cases
@settings(max_examples=60, deadline=None)
def test_shares_are_a_partition_of_unity_and_regions_are_bounded(
    seed, n, d, max_size, overlap, repeated
):
    X = cloud(seed, n, d, repeated)
    tree, regions = grow_tree(X, max_size, overlap=overlap, seed=(seed,))
    total = np.zeros(n)
    for rows, weight in regions:
        assert len(rows) > 0
        assert (np.diff(rows) > 0).all()
        if weight is not None:
            assert ((weight > 0) & (weight <= 1)).all()
        total[rows] += 1.0 if weight is None else weight
        # Equal samples cannot be separated.
        assert len(rows) <= max_size or (X[rows] == X[rows[0]]).all()
    np.testing.assert_allclose(total, 1.0, atol=1e-12)
    assert tree.n_regions == len(regions)
    assert overlap or not tree.overlaps


@cases
@settings(max_examples=40, deadline=None)
def test_samples_find_their_region_again(seed, n, d, max_size, overlap, repeated):
    X = cloud(seed, n, d, repeated)
    tree, regions = grow_tree(X, max_size, overlap=overlap, seed=(seed,))
    tree = pickle.loads(pickle.dumps(tree))
    some = np.arange(n)[:: max(1, n // 7)]
    for Z in (X, sparse.csr_matrix(X), np.asfortranarray(X)):
        for members, again in zip(regions, tree.divide(Z), strict=True):
            np.testing.assert_array_equal(again.rows, members.rows)
            np.testing.assert_array_equal(again.weight, members.weight)
        np.testing.assert_array_equal(tree.assign(Z)[some], tree.assign(Z[some]))
    if not overlap:
        for index, (rows, _) in enumerate(regions):
            assert (tree.assign(X)[rows] == index).all()


@cases
@settings(max_examples=60, deadline=None)
def test_a_tree_of_a_sample_divides_all_samples(seed, n, d, max_size, overlap, repeated):
    X = cloud(seed, n, d, repeated)
    with patch.multiple(region_tree, _TRUNK_SAMPLE=40, _FEWEST_TO_SPLIT=9):
        tree, regions = grow_tree(X, max_size, overlap=overlap, seed=(seed,))
    total = np.zeros(n)
    for (rows, weight), again in zip(regions, tree.divide(X), strict=True):
        assert len(rows) > 0
        np.testing.assert_array_equal(again.rows, rows)
        np.testing.assert_array_equal(again.weight, weight)
        total[rows] += 1.0 if weight is None else weight
        assert len(rows) <= max_size or (X[rows] == X[rows[0]]).all()
    np.testing.assert_allclose(total, 1.0, atol=1e-12)


@cases
@settings(max_examples=40, deadline=None)
def test_parts_in_different_places_grow_the_same_tree(seed, n, d, max_size, overlap, repeated):
    X = cloud(seed, n, d, repeated)
    grower = TreeGrower(max_size, overlap, (seed,))
    with patch.multiple(region_tree, _TRUNK_SAMPLE=40, _FEWEST_TO_SPLIT=9):
        whole, _ = grow_tree(X, max_size, overlap=overlap, seed=(seed,))
        trunk, _ = grower.grow_trunk(X[grower.subsample(n)], n)
    branches = []
    for index, (rows, _) in enumerate(trunk.divide(X)):
        # Only the rows of this region, as on a worker that has no others.
        branches += grower.grow_branches(X[rows], trunk, [index])[0]
    tree = attach_branches(trunk, branches)
    for name in ("directions", "offsets", "bands", "is_split", "fill_values"):
        np.testing.assert_array_equal(getattr(tree, name), getattr(whole, name))


def test_the_sample_comes_from_the_seed_and_the_number_of_rows():
    grower = TreeGrower(10, seed=(3, 0))
    np.testing.assert_array_equal(grower.subsample(50_000), np.arange(50_000))
    rows = grower.subsample(200_000)
    assert len(rows) == len(np.unique(rows)) == 50_000
    assert (np.diff(rows) > 0).all()
    np.testing.assert_array_equal(rows, grower.subsample(200_000))
    np.testing.assert_array_equal(rows, TreeGrower(10, seed=(3, 1)).subsample(200_000))
    assert (rows != TreeGrower(10, seed=(4, 0)).subsample(200_000)).any()
    # No array of ten billion positions is allocated.
    assert grower.subsample(10**10).max() > 9 * 10**9


def test_regions_of_many_samples_are_nearly_halves_of_halves():
    X = np.random.RandomState(0).normal(size=(120_000, 2)).astype(np.float32)
    _, regions = grow_tree(X, 4000)
    sizes = np.array([len(rows) for rows, _ in regions])
    assert sizes.max() <= 4000
    assert sizes.sum() == len(X)
    # Regions of 3,750 samples are expected, and halves of those above 4,000.
    assert len(sizes) < 45
    assert np.median(sizes) > 3300


@given(seed=st.integers(0, 2**16), d=st.integers(1, 40), share=st.floats(0.0, 1.0))
@settings(max_examples=40, deadline=None)
def test_projection_has_a_plain_twin_and_is_the_same_for_sparse(seed, d, share):
    rng = np.random.RandomState(seed)
    X = rng.normal(size=(20, d)) * (rng.uniform(size=(20, d)) < share)
    rows, direction = rng.permutation(20)[:11], rng.normal(size=d)
    found = project(X, rows, direction, np.zeros(d))
    np.testing.assert_allclose(found, X[rows] @ direction, atol=1e-12)
    again = project(sparse.csr_matrix(X), rows, direction, np.zeros(d))
    np.testing.assert_array_equal(again, found)


def test_order_of_samples_does_not_matter():
    X = cloud(0, 500, 4)
    order = np.random.RandomState(1).permutation(500)
    tree, regions = grow_tree(X, 60)
    other, others = grow_tree(X[order], 60)
    np.testing.assert_allclose(other.directions, tree.directions, atol=1e-9)
    for members, again in zip(regions, others, strict=True):
        np.testing.assert_array_equal(np.sort(order[again.rows]), members.rows)


def test_regions_are_halves_of_halves():
    _, regions = grow_tree(cloud(3, 1000, 5), 130)
    assert [len(rows) for rows, _ in regions] == [125] * 8


def test_trees_depend_on_the_seed_only():
    X = cloud(3, 1000, 5)
    one, again, other = (grow_tree(X, 130, seed=(seed,))[0] for seed in (0, 0, 1))
    np.testing.assert_array_equal(one.directions, again.directions)
    assert (one.assign(X) != other.assign(X)).any()


def test_far_groups_are_kept_together():
    X = np.vstack([cloud(0, 50, 3), cloud(1, 50, 3) + 100.0])
    _, regions = grow_tree(X, 60)
    assert {tuple(np.unique(rows // 50)) for rows, _ in regions} == {(0,), (1,)}


def test_missing_values_are_replaced_by_column_means():
    X = cloud(0, 200, 4)
    X[::3, :2] = np.nan
    tree, regions = grow_tree(X, 30)
    assert sum(len(rows) for rows, _ in regions) == 200
    np.testing.assert_allclose(tree.fill_values, np.nanmean(X, axis=0))
    X[:, 3] = np.nan
    assert np.isfinite(grow_tree(X, 30)[0].directions).all()


@pytest.mark.parametrize("n", [1, 50])
def test_equal_samples_are_one_region(n):
    tree, regions = grow_tree(np.ones((n, 3)), 2)
    assert tree.n_regions == 1
    np.testing.assert_array_equal(regions[0].rows, np.arange(n))


def test_samples_whose_projections_overflow_stay_together():
    X = np.full((10, 2), 1e308) * np.array([[1.0, -1.0]] * 5 + [[-1.0, 1.0]] * 5)
    with np.errstate(all="ignore"):
        _, regions = grow_tree(X, 6)
    assert sum(len(rows) for rows, _ in regions) == 10


def test_single_and_double_precision_agree():
    X = cloud(0, 400, 5).astype(np.float32)
    tree, _ = grow_tree(X, 50)
    np.testing.assert_array_equal(tree.assign(X), tree.assign(X.astype(np.float64)))
