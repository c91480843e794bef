"""Who wins, and whether the grid was large enough."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from search_cases import data

from lokl import UniformMKLClassifier
from lokl.kernels import RBF, Linear
from lokl.search import KernelSearchCV
from lokl.search.results import (
    choose,
    grid_complexity,
    standard_error,
    warn_at_grid_boundary,
)
from lokl.search.tasks import coordinates, cost_paths


def chosen(candidates, scores, rule="one_se"):
    scores = np.asarray(scores, dtype=float)
    errors = np.array([standard_error(own) for own in scores])
    return choose(scores.mean(axis=1), errors, rule, lambda i: grid_complexity(candidates[i]))


def test_one_standard_error_takes_the_simplest_that_is_near():
    candidates = [{"C": 100.0}, {"C": 1.0}, {"C": 0.1}]
    # The best is 0.8 with a standard error of 0.1 / 2.
    scores = [[0.7, 0.9, 0.7, 0.9], [0.76] * 4, [0.74] * 4]
    assert chosen(candidates, scores, "best") == 0
    assert chosen(candidates, scores) == 1
    assert chosen(candidates[::2], scores[::2]) == 0


@pytest.mark.parametrize(
    "candidates",
    [
        [{"C": 1.0}, {"C": 0.5}],
        [{"C": 1.0, "kernels": [RBF(2.0)]}, {"C": 1.0, "kernels": [RBF(0.5)]}],
        [{"C": 1.0, "kernels__rbf__gamma": 2.0}, {"C": 1.0, "kernels__rbf__gamma": 0.5}],
        [{"svc__C": 2.0, "svc__kernels": "rbf"}, {"svc__C": 1.0, "svc__kernels": ["rbf", "poly2"]}],
        [{"kernels": ["linear", "poly2"]}, {"kernels": ["linear"]}],
        [{"kernels": [Linear(), RBF(1.0)]}, {"kernels": [RBF(1.0)]}],
    ],
)
def test_what_is_simpler(candidates):
    equal = [[0.5, 0.7], [0.5, 0.7]]
    assert chosen(candidates, equal) == 1
    assert chosen(candidates[::-1], equal) == 0


def test_of_equally_simple_ones_the_first_wins():
    assert chosen([{"tol": 1}, {"tol": 2}], [[0.5, 0.7], [0.5, 0.7]]) == 0


@given(scores=st.lists(st.lists(st.floats(0, 1), min_size=3, max_size=3), min_size=1, max_size=6))
def test_the_simplest_is_never_clearly_worse_nor_more_complex(scores):
    candidates = [{"C": float(2**k)} for k in range(len(scores))]
    best, simple = (chosen(candidates, scores, rule) for rule in ("best", "one_se"))
    assert simple <= best
    means = np.mean(scores, axis=1)
    assert means[simple] >= means[best] - standard_error(scores[best])


def test_the_search_follows_the_rule():
    X, y = data(80)
    grid = {"C": [0.001, 1.0, 3.0, 10.0, 1000.0]}
    searches = {
        rule: KernelSearchCV(UniformMKLClassifier("rbf"), grid, rule=rule).fit(X, y)
        for rule in ("best", "one_se")
    }
    best, simple = searches["best"], searches["one_se"]
    assert simple.best_params_["C"] <= best.best_params_["C"]
    assert simple.best_score_ == simple.cv_results_["mean_test_score"][simple.best_index_]
    decided = KernelSearchCV(
        UniformMKLClassifier("rbf"), grid, rule="one_se", refit=lambda results: 4
    )
    assert decided.fit(X, y).best_params_["C"] == 1000


def told_of_edges(candidates, scores):
    with pytest.warns(UserWarning, match="extend the grid") as told:
        warn_at_grid_boundary(candidates, np.asarray(scores))
    return [str(one.message) for one in told]


def test_the_best_on_an_edge_is_told_with_the_side_to_extend():
    costs = [{"C": c} for c in (10.0, 0.1, 1.0)]
    (message,) = told_of_edges(costs, [0.9, 0.7, 0.8])
    assert "best C is 10," in message
    assert "above 10" in message
    assert "below 0.1" in told_of_edges(costs, [0.7, 0.9, 0.8])[0]


def test_widths_of_whole_lists_of_kernels_have_edges_too():
    lists = [{"kernels": [Linear(), RBF(g).on([0])]} for g in (0.1, 1.0, 10.0)]
    (message,) = told_of_edges(lists, [0.7, 0.8, 0.9])
    assert "kernels__1__kernel__gamma is 10" in message


@pytest.mark.parametrize(
    ("candidates", "scores"),
    [
        ([{"C": c} for c in (0.1, 1.0, 10.0)], [0.7, 0.9, 0.8]),
        ([{"C": c} for c in (0.1, 1.0, 10.0)], [0.7, 0.9, 0.9]),
        # Flat towards the edge.
        ([{"C": c} for c in (10.0, 1.0, 0.1)], [0.9, 0.9, 0.8]),
        # Two values: each is an edge.
        ([{"C": c} for c in (0.1, 10.0)], [0.7, 0.9]),
        # No order.
        ([{"fit": c} for c in (False, True, None)], [0.7, 0.8, 0.9]),
        ([{"kernels": c} for c in ("rbf", "linear", "poly2")], [0.7, 0.8, 0.9]),
        # Other things are not equal.
        ([{"C": 0.1, "a": 1}, {"C": 1.0, "a": 2}, {"C": 10.0, "a": 2}], [0.7, 0.8, 0.9]),
        ([{"C": c} for c in (0.1, 1.0, 10.0)], [np.nan, np.nan, 0.9]),
        ([{"C": c} for c in (0.1, 1.0, 10.0)], [np.nan] * 3),
    ],
)
def test_no_word_where_the_grid_is_large_enough_or_has_no_order(candidates, scores):
    warn_at_grid_boundary(candidates, np.asarray(scores))


def test_the_search_tells_at_the_line_that_called_it():
    X, y = data(60)
    with pytest.warns(UserWarning, match="the best C is .* extend the grid below") as told:
        KernelSearchCV(UniformMKLClassifier("rbf"), {"C": [0.1, 1.0, 10.0]}).fit(X, y)
    assert told[-1].filename == __file__


def test_places_in_the_grid():
    assert coordinates({"C": 1, "kernels": [RBF(0.5)], "flag": True}) == {
        "C": 1,
        "kernels": 1,
        "kernels__0": "RBF",
        "kernels__0__gamma": 0.5,
        "flag": "True",
    }
    assert coordinates({"kernels__rbf": RBF(0.5)})["kernels__rbf__gamma"] == 0.5
    wrong = object()
    assert list(coordinates({"kernels": wrong})) == ["kernels"]
    grid = [{"C": 3, "a": 1}, {"C": 1, "a": 2}, {"C": 2, "a": 1}, {"a": 1}]
    assert cost_paths(grid, range(4)) == [[3, 2, 0], [1]]
    assert cost_paths(grid, range(4), ["C", "a"]) == [[3, 1, 2, 0]]
