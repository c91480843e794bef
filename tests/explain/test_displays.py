"""Displays: what is drawn is what the models say, and all of it can be read."""

import inspect
from itertools import pairwise

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt
from matplotlib.colors import to_hex
from matplotlib.contour import QuadContourSet
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import lokl
from lokl import explain
from lokl.datasets import load, make_two_regions, make_views
from lokl.explain.displays import COLOURS, Display
from lokl.kernels import RBF, Linear, Polynomial, per_view
from lokl.search import CalibratedMKLClassifier

DISPLAYS = [name for name in explain.__all__ if name.endswith("Display")]
VIEWS = {"sight": [0, 1, 2, 3], "sound": [4, 5, 6, 7], "touch": [8, 9, 10, 11]}


@pytest.fixture(scope="module")
def problem():
    """Samples of three views, some of which are missing."""
    X, y, _, _ = make_views(120, 3, missing=0.1, random_state=0)
    return X, np.array(["no", "yes"])[y.astype(int)]


def vote():
    return lokl.TrustedVoteClassifier(per_view(RBF("scale"), VIEWS), 10.0, random_state=0)


def grid(estimator):
    cost = next(name for name in estimator.get_params() if name.endswith("C"))
    return {cost: [1.0, 10.0, 100.0]}


MODELS = {
    "estimator": vote(),
    "pipeline": make_pipeline(StandardScaler(), vote()),
    "search": lokl.KernelSearchCV(vote(), grid(vote()), cv=3),
    "search of scikit-learn": GridSearchCV(
        make_pipeline(StandardScaler(), vote()), {"trustedvoteclassifier__C": [1.0, 10.0]}, cv=3
    ),
    "pipeline of a search": make_pipeline(
        StandardScaler(), lokl.KernelSearchCV(vote(), grid(vote()), cv=3)
    ),
    "automkl": lokl.AutoMKLClassifier(views=VIEWS),
    "calibrated": CalibratedMKLClassifier(make_pipeline(StandardScaler(), vote()), cv=3),
}
OPTIONS = {
    "ContributionDisplay": {"sample": 7},
    "ViewValueDisplay": {"cv": 3},
    "WeightStabilityDisplay": {"cv": 3, "n_repeats": 2, "random_state": 0},
    "ColumnDisplay": {"random_state": 0},
}


@pytest.fixture(scope="module")
def fitted(problem):
    models = {}

    def fit(name):
        if name not in models:
            models[name] = MODELS[name].fit(problem[0][:80], problem[1][:80])
        return models[name]

    return fit


def check_readable(figure):
    """Check that every text is inside the figure, and that names on an axis do not overlap."""
    figure.canvas.draw()
    width, height = figure.canvas.get_width_height()
    hidden, columns = set(), []
    for ax in figure.axes:
        for axis in (ax.xaxis, ax.yaxis):
            low, high = sorted(axis.get_view_interval())
            ticks = axis.get_major_ticks()
            outside = [t for t in ticks if not (ax.axison and low <= t.get_loc() <= high)]
            hidden |= {id(label) for t in outside for label in (t.label1, t.label2)}
        columns.append([label for label in ax.get_yticklabels() if label.get_text()])
    for text in figure.findobj(mpl.text.Text):
        if text.get_visible() and text.get_text().strip() and id(text) not in hidden:
            box = text.get_window_extent()
            assert -1 <= box.x0 <= box.x1 <= width + 1, text.get_text()
            assert -1 <= box.y0 <= box.y1 <= height + 1, text.get_text()
    for names in columns:
        shown = [name.get_window_extent() for name in names if id(name) not in hidden]
        boxes = sorted((box.y0, box.y1) for box in shown)
        assert all(one[1] <= other[0] + 1 for one, other in pairwise(boxes))


def draw(name, model, X, y, **more):
    """Draw with the arguments that a display takes."""
    make = getattr(explain, name).from_estimator
    known = {"estimator": model, "X": X, "y": y, **OPTIONS.get(name, {}), **more}
    takes = inspect.signature(make).parameters
    given = {k: v for k, v in known.items() if k in takes or k in OPTIONS.get(name, {})}
    return make(**given)


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("name", [n for n in DISPLAYS if n != "BoundaryDisplay"])
def test_every_display_of_every_kind_of_model(problem, fitted, name, kind):
    model, (X, y) = fitted(kind), problem
    if name == "SearchDisplay" and "search" not in kind and kind != "automkl":
        with pytest.raises(TypeError, match="search"):
            draw(name, model, X[80:], y[80:])
        return
    backend = mpl.get_backend()
    display = draw(name, model, X[80:], y[80:])
    assert isinstance(display, Display)
    assert display.figure_ is display.ax_.figure
    check_readable(display.figure_)
    _, ax = plt.subplots()
    assert display.plot(ax=ax) is display
    assert (display.ax_, display.figure_) == (ax, ax.figure)
    assert mpl.get_backend() == backend


def test_every_display_is_documented_by_what_it_draws():
    assert len(DISPLAYS) == 12
    for name in DISPLAYS:
        assert "from_estimator" in dir(getattr(explain, name))
        assert getattr(explain, name).from_estimator.__doc__


# Trust


def test_trust_of_every_sample_by_class(problem, fitted):
    X, y = problem
    model = fitted("estimator")
    ax = explain.TrustDisplay.from_estimator(model, X, y).ax_
    (image,) = ax.images
    order = np.argsort(y, kind="stable")
    drawn = image.get_array()
    assert_array_equal(np.ma.getdata(drawn), model.trust(X)[order])
    lacks = np.stack([np.isnan(X[:, 4 * k]) for k in range(3)], axis=1)
    assert_array_equal(np.ma.getmaskarray(drawn), lacks[order])
    assert [text.get_text() for text in ax.get_xticklabels()] == list(VIEWS)
    assert [text.get_text() for text in ax.get_yticklabels()] == ["no", "yes"]


def test_marked_views_have_a_dot(problem, fitted):
    X, _ = problem
    marked = np.zeros((len(X), 3), dtype=bool)
    marked[5, 2] = True
    display = explain.TrustDisplay.from_estimator(fitted("estimator"), X, marked=marked)
    (dots,) = display.ax_.lines
    assert_array_equal(dots.get_xydata(), [[2, 5]])


def test_models_without_trust_show_their_weights(problem):
    X, y = problem
    model = lokl.LMKLClassifier(per_view(Linear(), VIEWS), random_state=0).fit(X, y)
    (image,) = explain.TrustDisplay.from_estimator(model, X).ax_.images
    assert_allclose(np.ma.getdata(image.get_array()), model.weights(X))


def test_equal_weights_are_a_sentence(problem):
    X, y = problem
    model = lokl.UniformMKLClassifier(per_view(RBF("scale"), VIEWS)).fit(X, y)
    display = explain.TrustDisplay.from_estimator(model, X, y)
    assert not display.ax_.images
    assert "equally" in display.ax_.texts[0].get_text()
    check_readable(display.figure_)


# One prediction


def ends(ax):
    return [bar.get_x() + bar.get_width() for bar in ax.patches]


def test_bars_lead_from_zero_to_the_log_odds(problem, fitted):
    X, _ = problem
    model = fitted("estimator")
    for row in range(5):
        ax = explain.ContributionDisplay.from_estimator(model, X, sample=row).ax_
        no, yes = model.predict_proba(X[[row]])[0]
        assert_allclose(ends(ax)[-1], abs(np.log(yes / no)), atol=1e-6)
        likely = model.classes_[int(yes > no)]
        assert ax.get_title().startswith(f"{row}: {likely} rather than ")


def test_of_several_classes_the_best_two_are_compared():
    wine = load("wine")
    X = wine.data / wine.data.std(axis=0)
    views = {"first": slice(0, 6), "rest": slice(6, 13)}
    model = lokl.UniformMKLClassifier(per_view(RBF(), views)).fit(X, wine.target)
    ax = explain.ContributionDisplay.from_estimator(model, X[[100]]).ax_
    *_, second, first = np.sort(model.decision_function(X[[100]])[0])
    assert_allclose(ends(ax)[-1], first - second, atol=1e-6)


def test_a_predicted_value_is_the_end_of_the_bars(problem):
    X, _ = problem
    kernels = per_view(RBF("scale"), VIEWS)
    model = lokl.UniformMKLRegressor(kernels).fit(X, np.arange(len(X)) / len(X))
    display = explain.ContributionDisplay.from_estimator(model, X[[3]])
    assert_allclose(ends(display.ax_)[-1], model.predict(X[[3]])[0], atol=1e-6)
    check_readable(display.figure_)


def test_samples_are_named_by_the_index(problem, fitted):
    X, _ = problem
    frame = pd.DataFrame(X, index=[f"P{k}" for k in range(len(X))])
    frame.columns = frame.columns.astype(str)
    model = vote().fit(frame, problem[1])
    by_name = explain.ContributionDisplay.from_estimator(model, frame, sample="P7")
    by_row = explain.ContributionDisplay.from_estimator(model, frame.iloc[[7]])
    assert_allclose(ends(by_name.ax_), ends(by_row.ax_))
    assert by_name.ax_.get_title().startswith("P7: ")


def test_what_cannot_be_drawn(problem, fitted):
    X, y = problem
    model = fitted("estimator")
    with pytest.raises(ValueError, match=r"got 2; .*sample='0'"):
        explain.ContributionDisplay.from_estimator(model, X[:2])
    with pytest.raises(ValueError, match="each of 120 samples, got 3"):
        explain.TrustDisplay.from_estimator(model, X, y[:3])
    for display in (explain.ReliabilityDisplay, explain.RiskCoverageDisplay):
        with pytest.raises(ValueError, match="pass y"):
            display.from_estimator(model, X)
    with pytest.raises(ValueError, match="3 columns for 2 classes"):
        explain.ReliabilityDisplay.from_predictions([0, 1], [[0.2, 0.3, 0.5]] * 2)
    forest = StandardScaler().fit(X)
    with pytest.raises(TypeError, match="history_"):
        explain.ConvergenceDisplay.from_estimator(forest)


# Reliability


def test_predictions_and_models_have_the_same_reliability(problem, fitted):
    X, y, model = problem[0][80:], problem[1][80:], fitted("estimator")
    for display in (explain.ReliabilityDisplay, explain.RiskCoverageDisplay):
        one = display.from_estimator(model, X, y)
        other = display.from_predictions(y, model.predict_proba(X), classes=model.classes_)
        assert_array_equal(one.ax_.lines[0].get_xydata(), other.ax_.lines[0].get_xydata())
    binary = explain.RiskCoverageDisplay.from_predictions(y == "yes", model.predict_proba(X)[:, 1])
    assert_allclose(binary.curve.risk, one.curve.risk)


def test_reliability_on_training_rows_is_warned_of(problem, fitted):
    X, y, model = problem[0][:80], problem[1][:80], fitted("estimator")
    for display in (explain.ReliabilityDisplay, explain.RiskCoverageDisplay):
        with pytest.warns(UserWarning, match="80 of these samples"):
            display.from_estimator(model, X, y)


def test_the_last_point_is_the_risk_of_all(problem, fitted):
    X, y, model = problem[0][80:], problem[1][80:], fitted("pipeline")
    curve = explain.RiskCoverageDisplay.from_estimator(model, X, y).curve
    assert_allclose((curve.coverage[-1], curve.risk[-1]), (1.0, 1 - model.score(X, y)))


def test_regressions_are_ranked_by_disagreement(problem):
    X, _ = problem
    target = np.nan_to_num(X[:, 0])
    model = lokl.TrustedVoteRegressor(per_view(RBF("scale"), VIEWS), random_state=0)
    model.fit(X[:80], target[:80])
    display = explain.RiskCoverageDisplay.from_estimator(model, X[80:], target[80:])
    error = np.abs(model.predict(X[80:]) - target[80:]).mean()
    assert_allclose(display.curve.risk[-1], error)
    check_readable(explain.TrustDisplay.from_estimator(model, X, target).figure_)
    check_readable(explain.KernelMapDisplay.from_estimator(model, X, target).figure_)
    other = lokl.UniformMKLRegressor(per_view(RBF("scale"), VIEWS)).fit(X[:80], target[:80])
    with pytest.raises(ValueError, match="confidence"):
        explain.RiskCoverageDisplay.from_estimator(other, X[80:], target[80:])


# Searches and stability


@pytest.mark.parametrize("rule", ["best", "one_se"])
def test_the_chosen_candidate_is_marked(problem, rule):
    X, y = problem
    kernels = per_view(RBF("scale"), VIEWS)
    costs = [float(c) for c in np.geomspace(0.01, 100, 9)]
    search = lokl.KernelSearchCV(
        lokl.UniformMKLClassifier(kernels), {"C": costs}, cv=3, rule=rule
    ).fit(X, y)
    display = explain.SearchDisplay.from_estimator(search, n_best=3)
    assert len(display.candidates) == 3
    assert display.candidates[display.chosen] == f"C={search.best_params_['C']}"
    assert_allclose(display.scores[display.chosen], search.best_score_)


def test_the_chosen_model_of_automkl_is_marked(fitted):
    model = fitted("automkl")
    display = explain.SearchDisplay.from_estimator(model)
    assert display.candidates[display.chosen].startswith(model.best_method_)
    assert_allclose(display.scores[display.chosen], model.best_score_)


def test_kernels_of_a_stability_are_its_rows(problem):
    X, y = problem
    model = lokl.LMKLClassifier(per_view(Linear(), VIEWS), random_state=0)
    display = draw("WeightStabilityDisplay", model, X, y)
    assert [text.get_text() for text in display.ax_.get_yticklabels()] == list(VIEWS)
    check_readable(display.figure_)


@pytest.mark.parametrize("output", ["default", "pandas"])
def test_columns_keep_their_names(problem, output):
    X, y = problem
    frame = pd.DataFrame(np.nan_to_num(X), columns=[f"gene {k}" for k in range(12)])
    frame["gene 3"] += 5.0 * (y == "yes")
    scaler = StandardScaler().set_output(transform=output)
    for model in (
        make_pipeline(scaler, lokl.UniformMKLClassifier(["rbf"])),
        lokl.AutoMKLClassifier(methods=["UniformMKL"], random_state=0),
    ):
        model.fit(frame[:80], y[:80])
        display = draw("ColumnDisplay", model, frame[80:], y[80:])
        assert display.ax_.get_yticklabels()[0].get_text() == "gene 3"


def test_only_the_largest_columns_are_drawn():
    display = explain.ColumnDisplay(["a", "b", "c"], np.array([0.1, -0.9, 0.3]), n_largest=2)
    shown = display.plot().ax_.get_yticklabels()
    assert [text.get_text() for text in shown] == ["b", "c"]


def test_columns_of_one_sample_add_up_to_its_views(problem, fitted):
    X, model = problem[0], fitted("pipeline")
    display = explain.ColumnDisplay.from_estimator(model, X, sample=7)
    sample = explain.explain(model, X).sample(7)
    assert_allclose(display.importance.sum(), sum(own.contribution or 0 for own in sample.views))
    assert display.ax_.get_title().startswith(sample.title)
    found = explain.explain(model, X[7:8], columns=True)
    again = explain.ColumnDisplay.from_explanation(found, sample=0)
    assert_allclose(again.importance, display.importance)
    absolute = explain.ColumnDisplay.from_explanation(found)
    assert_allclose(absolute.importance, np.abs(display.importance))
    with pytest.raises(ValueError, match="columns=True"):
        explain.ColumnDisplay.from_explanation(explain.explain(model, X))


def test_alignments_are_written(problem, fitted):
    X, y = problem
    display = draw("KernelAlignmentDisplay", fitted("pipeline"), X, y)
    written = [text.get_text() for text in display.ax_.texts]
    assert written[:3] == [f"{value:.2f}" for value in display.between[0]]
    assert len(written) == 12


# Boundaries

KERNELS = {"quadratic": Polynomial(2), "Gaussian": RBF(0.5)}


@pytest.fixture(scope="module")
def plane():
    return make_two_regions(n_samples=120, random_state=0)


def contours(ax):
    return [drawn for drawn in ax.collections if isinstance(drawn, QuadContourSet)]


def test_one_svm_has_one_pair_of_margins(plane):
    X, y = plane
    model = lokl.UniformMKLClassifier(KERNELS, C=10.0).fit(X, y)
    display = explain.BoundaryDisplay.from_estimator(model, X, y)
    assert [list(drawn.levels) for drawn in contours(display.ax_)] == [[0.0], [-1.0, 1.0]]
    assert display.ax_.get_title().startswith(f"{len(model.support_)} support vectors")
    check_readable(display.figure_)


def test_experts_have_margins_of_their_own_where_they_are_trusted(plane):
    X, y = plane
    settings = {"temperature": 0.1, "success_kernel": RBF(0.5), "random_state": 0}
    model = lokl.LDMKLClassifier(KERNELS, 10.0, **settings).fit(X, y)
    ax = explain.BoundaryDisplay.from_estimator(model, X, y).ax_
    decision, *margins = contours(ax)
    assert list(decision.levels) == [0.0]
    for drawn in margins:
        assert list(drawn.levels) == [-1.0, 1.0]
        k = COLOURS.index(to_hex(drawn.get_edgecolor()[0]).upper())
        points = np.vstack([path.vertices for path in drawn.get_paths() if len(path.vertices)])
        trust = model.weights(points)
        # Lines end inside the last trusted cell of the grid.
        assert trust[:, k].min() > 0.4
        values = model.experts_[k].decide(points, 2 * trust[:, k])[:, 0]
        assert_allclose(np.abs(values), 1.0, atol=0.05)


@pytest.mark.parametrize("kind", ["pipeline", "automkl", "vote"])
def test_the_plane_of_other_models(plane, kind):
    frame = pd.DataFrame(plane[0], columns=["width", "height"])
    classes = np.where(frame["width"] > 1, 2, plane[1])
    views = per_view(RBF("scale"), {"across": ["width"], "up": ["height"]})
    model = {
        "pipeline": make_pipeline(StandardScaler(), lokl.LMKLClassifier(KERNELS, random_state=0)),
        "automkl": lokl.AutoMKLClassifier(),
        "vote": lokl.TrustedVoteClassifier(views, random_state=0),
    }[kind].fit(frame, classes)
    display = explain.BoundaryDisplay.from_estimator(model, frame, classes)
    assert display.ax_.get_xlabel() == "width"
    lines = contours(display.ax_)
    assert len(lines) == 3
    for k, line in enumerate(lines):
        points = np.vstack([path.vertices for path in line.get_paths() if len(path.vertices)])
        decision = model.decision_function(pd.DataFrame(points, columns=frame.columns))
        # On the line the class is as good as the best other one.
        ahead = decision[:, k] - np.delete(decision, k, axis=1).max(axis=1)
        assert np.median(np.abs(ahead)) < 0.05 * np.ptp(decision)
    check_readable(display.figure_)


def test_samples_must_lie_in_the_plane(plane):
    X, y = plane
    model = lokl.UniformMKLClassifier(KERNELS).fit(X, y)
    with pytest.raises(ValueError, match=r"two columns, got shape \(120, 3\)"):
        explain.BoundaryDisplay.from_estimator(model, np.column_stack([X, X[:, 0]]), y)
    regressor = lokl.UniformMKLRegressor(KERNELS).fit(X, X[:, 0])
    with pytest.raises(TypeError, match="UniformMKLRegressor"):
        explain.BoundaryDisplay.from_estimator(regressor, X, y)
