"""Odd data, odd settings, and the one law that all of it must obey.

A case is a model, samples to learn from and samples to predict. Either both give finite, sane
answers, or a ValueError that our own code or scikit-learn's validation raised on purpose.
"""

import signal
import time
import traceback
import warnings
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import polars
import pyarrow
from hypothesis import strategies as st
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning, DataConversionWarning

import lokl
from lokl._arrays import as_dense, as_samples
from lokl._methods import METHODS
from lokl.gates import GaussianGate, SigmoidGate, SoftmaxGate
from lokl.kernels import RBF, Callable, Chi2, Cosine, Laplacian, Linear, Polynomial, rbf_ladder
from lokl.kernels import Sigmoid as Tanh
from lokl.solvers import MWU, Exact, LibSVM

ESTIMATORS = [name for m in METHODS for name in (m.classifier, m.regressor) if name]
# Seconds of work after which a case counts as hanging; a busy machine may need ten times as long.
PATIENCE = 20
BUSY = 10
# Errors may quote a value, not a matrix.
LONGEST_MESSAGE = 600
# Where errors may be raised: by us, or by scikit-learn's checks of input.
ACCOUNTABLE = ("/lokl/", "/sklearn/utils/", "/sklearn/base.py")


@dataclass
class Case:
    """One model and its data."""

    name: str
    settings: dict[str, Any]
    X: Any
    y: Any
    sample_weight: Any
    new: Any
    told: str  # how it was made, for reports

    def __repr__(self) -> str:
        settings = ", ".join(f"{key}={value!r}" for key, value in self.settings.items())
        return f"{self.name}({settings}) on {self.told}"


def inner(X, Z):
    """A kernel function of a user."""
    return np.asarray(X @ Z.T.toarray() if sparse.issparse(X) else X @ Z.T)


# Often one, so that most cases get past the checks of magnitudes.
SCALES = [1.0] * 12 + [1e-150, 1e-80, 1e-20, 1e-8, 1e-3, 1e2, 1e4, 1e8, 1e20, 1e80, 1e150]
COSTS = [1.0] * 6 + [1e-300, 1e-12, 1e-3, 0.1, 10.0, 100.0, 1e3, 1e6, 1e12, 1e300]
GAMMAS = ["scale", "scale", "median", 1e-300, 1e-10, 0.01, 1.0, 10.0, 1e10, 1e300]
SHAPES = ["plain", "duplicated rows", "constant column", "constant", "duplicated columns", "sparse"]
CONTAINERS = [
    *("array", "array", "array", "fortran", "strided", "backwards", "read-only", "float32"),
    *("float16", "long double", "big-endian", "integers", "bytes", "truth values", "list"),
    *("objects", "frame", "nullable", "categorical", "polars", "pyarrow", "csr", "csr", "csr64"),
    *("csc", "coo", "bsr", "dia", "dok", "lil"),
]
LABELS = [
    *("numbers", "numbers", "strings", "objects", "signs", "booleans", "huge", "lopsided", "one"),
    *("floats", "small integers", "many", "categories", "column"),
]
LOSSES = ["auto"] * 10 + ["hinge", "squared_hinge", "squared", "squared", "epsilon_insensitive"]


@st.composite
def kernel(draw):
    """Any kernel, by its name or as an object."""
    gamma = draw(st.sampled_from(GAMMAS))
    number = gamma if isinstance(gamma, float) else 1.0
    choices = [
        lambda: RBF(gamma),
        lambda: RBF(gamma),
        Linear,
        lambda: Polynomial(draw(st.sampled_from([1, 2, 3, 7, 500])), gamma=number),
        lambda: Polynomial(2, coef0=draw(st.sampled_from([0.0, 1.0, 1e10]))),
        lambda: Laplacian(number),
        Cosine,
        lambda: Tanh(number),
        lambda: Chi2(number),
        lambda: Callable(inner),
        lambda: draw(st.sampled_from(["linear", "poly2", "rbf", "cosine", "sigmoid", "laplacian"])),
    ]
    made = draw(st.sampled_from(choices))()
    if isinstance(made, str):
        return made
    how = draw(st.sampled_from([None, None, "unit_diag", "mean_diag", "trace"]))
    made = made if how is None else made.normalized(how)
    return made * Cosine() if draw(st.integers(0, 15)) == 0 else made


@st.composite
def kernels(draw, n_features, views):
    """A dictionary of kernels; with `views`, each is limited to some columns."""
    if views:
        found = {}
        for i, columns in enumerate(views):
            base = draw(kernel())
            base = RBF() if isinstance(base, str) else base
            found[f"view {i}"] = base.on(columns)
        return found
    kind = draw(st.sampled_from(["none", "ladder", "list", "list", "list", "mapping"]))
    if kind == "none":
        return None
    if kind == "ladder":
        return rbf_ladder(-2, 2)
    several = draw(st.lists(kernel(), min_size=1, max_size=4))
    return several if kind == "list" else {f"k{i}": one for i, one in enumerate(several)}


@st.composite
def solver(draw, tiny):
    cache = 1e-3 if tiny else 64
    objects = [Exact(cache_size=cache, working_set=4), LibSVM(), MWU(0.1, cache_size=cache)]
    return draw(st.sampled_from(["exact", "exact", "exact", "libsvm", "mwu", *objects]))


def _scaled(rng, n, d, shape, scale):
    X = rng.normal(size=(n, d))
    if shape == "sparse":
        X *= rng.uniform(size=(n, d)) < 0.3
    elif shape == "duplicated rows":
        X = X[rng.randint(max(1, n // 3), size=n)]
    elif shape == "constant column":
        X[:, 0] = 3.0
    elif shape == "constant":
        X[:] = 1.0
    elif shape == "duplicated columns":
        X[:] = X[:, :1]
    return X * scale


def _labels(rng, X, kind, n_classes):
    n = len(X)
    score = X[:, 0] + 0.3 * np.abs(X).max() * rng.normal(size=n)
    rank = np.argsort(np.argsort(score))
    codes = rank * n_classes // n
    if kind == "one":
        return np.zeros(n)
    if kind == "lopsided":
        codes = (rank == n - 1).astype(int)
    if kind == "strings":
        return np.array(["alpha", "beta", "gamma", "delta"])[codes]
    if kind == "objects":
        return np.array(["alpha", "beta", "gamma", "delta"], dtype=object)[codes]
    if kind == "categories":
        return pd.Series(pd.Categorical.from_codes(codes, list("abcd")))
    if kind == "small integers":
        return codes.astype(np.int8) - np.int8(100)
    if kind == "many":
        return rank // 2
    if kind == "column":
        return codes[:, np.newaxis]
    if kind == "signs":
        return np.where(codes > 0, 1.0, -1.0)
    if kind == "booleans":
        return codes > 0
    if kind == "huge":
        return codes * 10**15
    if kind == "floats":
        return codes.astype(float)
    return codes


def _contained(X, container):
    if container == "fortran":
        return np.asfortranarray(X)
    if container == "float32":
        with np.errstate(over="ignore", under="ignore"):
            return X.astype(np.float32)
    if container == "integers":
        return np.clip(np.nan_to_num(X), -1e9, 1e9).round().astype(int)
    if container == "list":
        return X.tolist()
    if container == "frame":
        return pd.DataFrame(X, columns=[f"column {j}" for j in range(X.shape[1])])
    if container in ("csr", "csr64"):
        csr = sparse.csr_array(X)
        if container == "csr64":
            csr.indices, csr.indptr = csr.indices.astype(np.int64), csr.indptr.astype(np.int64)
        return csr
    if container in ("csc", "coo", "bsr", "dia", "dok", "lil"):
        return sparse.csr_array(X).asformat(container)
    if container in TABLES:
        frame = pd.DataFrame(X, columns=[f"column {j}" for j in range(X.shape[1])])
        return TABLES[container](frame)
    return LAYOUTS.get(container, np.asarray)(X)


def _quietly(kind):
    def convert(X):
        with np.errstate(all="ignore"):
            return X.astype(kind)

    return convert


TABLES = {
    "nullable": lambda frame: frame.astype("Float64"),
    "categorical": lambda frame: frame.round(1).astype("category"),
    "polars": lambda frame: polars.from_pandas(frame),
    "pyarrow": lambda frame: pyarrow.Table.from_pandas(frame),
}
LAYOUTS = {
    "strided": lambda X: np.repeat(np.repeat(X, 2, axis=0), 2, axis=1)[::2, ::2],
    "backwards": lambda X: X[::-1, ::-1].copy()[::-1, ::-1],
    "read-only": lambda X: np.frombuffer(X.tobytes()).reshape(X.shape),
    "float16": _quietly(np.float16),
    "long double": _quietly(np.longdouble),
    "big-endian": _quietly(">f8"),
    "bytes": lambda X: np.clip(np.nan_to_num(X), -100, 100).astype(np.int8),
    "truth values": lambda X: X > 0,
    "objects": _quietly(object),
}


def _weights(rng, n, kind):
    if kind == "none":
        return None
    weight = rng.uniform(0.1, 3.0, size=n)
    if kind == "zeros":
        weight[rng.uniform(size=n) < 0.4] = 0.0
    elif kind == "wild":
        weight = 10.0 ** rng.uniform(-20, 20, size=n)
    elif kind == "largest":
        weight[0] = 1e308
    elif kind == "tiny":
        weight *= 1e-300
    return weight


@st.composite
def cases(draw, names=tuple(ESTIMATORS)):
    """Draw a case of one of these estimators."""
    name = draw(st.sampled_from(names))
    rng = np.random.RandomState(draw(st.integers(0, 2**31 - 1)))
    n = draw(st.sampled_from([2, 3, 4, 5, 8, 13, 20, 40]))
    d = draw(st.sampled_from([1, 2, 3, 5, 12, 60]))
    scale = draw(st.sampled_from(SCALES))
    shape = draw(st.sampled_from(SHAPES))
    container = draw(st.sampled_from(CONTAINERS))
    X = _scaled(rng, n + 6, d, shape, scale)
    with_views = d >= 2 and draw(st.integers(0, 3)) == 0
    views = [list(range(d // 2)), list(range(d // 2, d))] if with_views else []
    is_classifier = name.endswith("Classifier")
    kind = draw(st.sampled_from(LABELS))
    n_classes = draw(st.sampled_from([2, 2, 2, 3, 4])) if kind not in ("signs", "booleans") else 2
    if is_classifier:
        y = _labels(rng, X[:n], kind, min(n_classes, n))
    else:
        y = (X[:n, 0] / scale + rng.normal(size=n)) * draw(st.sampled_from(SCALES))
        y = np.column_stack([y, -y]) if draw(st.integers(0, 5)) == 0 else y
    missing = with_views and draw(st.booleans())
    if missing:
        for columns in views:
            X[np.ix_(rng.uniform(size=n + 6) < 0.3, columns)] = np.nan
    weight_kind = draw(
        st.sampled_from(["none"] * 6 + ["some", "some", "zeros", "wild", "largest", "tiny"])
    )
    far = draw(st.sampled_from([1.0, 1.0, 1.0, 1.0, 1e6, 1e-6, 1e155]))
    settings = _settings(draw, name, draw(kernels(d, views)))
    new = X[n:] * far
    told = (
        f"{n} x {d}, scale {scale:g}, {shape}, {container}, labels {kind}, weights {weight_kind}"
        f"{', missing views' if missing else ''}, new samples times {far:g}"
    )
    return Case(
        name,
        settings,
        _contained(X[:n], container),
        y,
        _weights(rng, n, weight_kind),
        _contained(new, container),
        told,
    )


def _settings(draw, name, kernels):
    """Some settings other than the defaults; rounds are few, so that cases are quick."""
    tiny = draw(st.integers(0, 4)) == 0
    settings = {"kernels": kernels, "C": draw(st.sampled_from(COSTS))}
    settings["solver"] = draw(solver(tiny))
    known = getattr(lokl, name)().get_params()
    if isinstance(settings["solver"], str) and tiny:
        settings["cache_size"] = 1e-3
    if "random_state" in known:
        settings["random_state"] = draw(st.integers(0, 3))
    if "class_weight" in known and draw(st.integers(0, 5)) == 0:
        settings["class_weight"] = "balanced"
    if "loss" in known:
        settings["loss"] = draw(st.sampled_from(LOSSES))
    if "epsilon" in known and name.endswith("Regressor"):
        settings["epsilon"] = draw(st.sampled_from([0.0, 0.1, 10.0, 1e100]))
    if "gate" in known:
        gates = [
            "softmax",
            "sigmoid",
            "gaussian",
            SoftmaxGate(5.0),
            SigmoidGate(),
            GaussianGate(3.0),
        ]
        settings["gate"] = draw(st.sampled_from(gates))
        settings["gating"] = draw(st.sampled_from(["auto", "input", "quadratic", "kernel_pca"]))
    if "callback" in known:
        settings["max_iter"] = draw(st.sampled_from([1, 5, 20]))
    if "success" in known:
        settings["success"] = draw(st.sampled_from(["train", "cv"]))
    if "n_clusters" in known:
        settings["n_clusters"] = draw(st.sampled_from([1, 2, 3, 7]))
    if "combine" in known:
        settings["combine"] = draw(st.sampled_from(["sum", "sum", "product"]))
        settings["regularizer"] = draw(st.sampled_from(["l1", "l2", "lp", "entropy"]))
    return settings


class BrokenLawError(AssertionError):
    """The law does not hold."""


def check(case: Case) -> str:
    """Run a case; return how it ended, or raise :class:`BrokenLawError`."""
    with warnings.catch_warnings(record=True) as caught, _patience(case):
        warnings.simplefilter("always")
        ended = _ended(case)
    _check_warnings(case, caught)
    return ended


def _ended(case: Case) -> str:
    model = getattr(lokl, case.name)(**case.settings)
    try:
        model.fit(case.X, case.y, sample_weight=case.sample_weight)
    except BrokenLawError:
        raise
    except Exception as error:
        _check_error(case, "fit", error)
        return "refused to fit"
    for samples in (case.X, case.new):
        try:
            model.predict(samples)
        except BrokenLawError:
            raise
        except Exception as error:
            _check_error(case, "predict", error)
            return "refused to predict"
        try:
            _check_answers(case, model, samples)
        except BrokenLawError:
            raise
        except Exception as error:
            # Decisions may be finite where parts of them that cancel are not.
            _check_error(case, "explain", error)
            return "refused to explain"
    return "answered"


def _check_error(case: Case, doing: str, error: Exception) -> None:
    frames = traceback.extract_tb(error.__traceback__)
    deepest = frames[-1]
    text = str(error)
    if not isinstance(error, ValueError):
        fault = "is no ValueError"
    elif not any(part in deepest.filename for part in ACCOUNTABLE):
        fault = f"was not raised on purpose but in {deepest.filename}:{deepest.lineno}"
    elif deepest.line is not None and not deepest.line.lstrip().startswith("raise"):
        fault = f"was not raised on purpose but at {deepest.filename}:{deepest.lineno}"
    elif not text or len(text) > LONGEST_MESSAGE:
        fault = f"has a message of {len(text)} characters"
    else:
        return
    raise BrokenLawError(
        f"{case!r}: {doing}: {type(error).__name__} {text[:300]!r} {fault}"
    ) from error


def _check_answers(case: Case, model: Any, X: Any) -> None:
    def sane(holds: Any, what: str) -> None:
        if not holds:
            raise BrokenLawError(f"{case!r}: {what}")

    n = len(X) if isinstance(X, list) else X.shape[0]
    predicted = model.predict(X)
    sane(
        len(predicted) == n and np.ndim(predicted) <= 2,
        f"{len(predicted)} predictions for {n} samples",
    )
    if hasattr(model, "classes_"):
        sane(set(predicted) <= set(np.unique(np.ravel(case.y))), "predicts a class that is none")
        decision = model.decision_function(X)
    else:
        decision = predicted
    sane(np.isfinite(decision).all(), "decisions are not finite")
    trust = model.weights(X)
    sane(np.isfinite(trust).all() and (trust >= 0).all(), "trust is not finite or negative")
    sane(np.abs(trust.sum(axis=-1) - 1.0).max() < 1e-6, "trust does not sum to one")
    parts = model.contributions(X)
    sane(np.isfinite(parts).all(), "contributions are not finite")
    total = (parts.sum(axis=-1) + model.intercept_).reshape(decision.shape)
    size = (np.abs(parts).sum(axis=-1) + np.abs(model.intercept_)).reshape(decision.shape)
    # Some sums are in another order, and large terms that cancel leave what was lost in rounding.
    adds_up = np.abs(total - decision) <= 1e-6 * (size + 1.0) + 1e-12 * _largest_term(model, X)
    sane(adds_up.all(), "contributions do not sum to the decision")


def _largest_term(model: Any, X: Any) -> float:
    """Bound on what a support sample adds to a decision, summed over all of them."""
    if not len(model.support_):
        return 0.0
    seen = [np.nan_to_num(as_dense(as_samples(Z))) for Z in (X, model.support_vectors_)]
    with np.errstate(over="ignore"):
        sizes = [
            np.prod([np.sqrt(np.abs(kernel.diag(Z)).max(initial=0.0)) for Z in seen])
            for kernel in model.kernels_
        ]
        return float(np.abs(model.dual_coef_).sum() * max(sizes))


def _check_warnings(case: Case, caught: list[Any]) -> None:
    allowed = (ConvergenceWarning, DataConversionWarning, UserWarning)
    # fit, and three calls for each of two sets of samples
    texts = Counter(str(warning.message) for warning in caught)
    for warning in caught:
        if not issubclass(warning.category, allowed) or issubclass(
            warning.category, RuntimeWarning | DeprecationWarning
        ):
            place = f"{warning.filename}:{warning.lineno}"
            raise BrokenLawError(
                f"{case!r}: {warning.category.__name__} {warning.message} at {place}"
            )
    for text, count in texts.items():
        if count > 8:
            raise BrokenLawError(f"{case!r}: {count} times the warning {text!r}")


@contextmanager
def _patience(case: Case):
    """Interrupt what hangs; compiled loops return often enough for that."""

    began, worked = time.perf_counter(), time.process_time()

    def hangs(number, frame):
        if max(time.process_time() - worked, (time.perf_counter() - began) / BUSY) >= PATIENCE:
            raise BrokenLawError(f"{case!r}: no answer after {PATIENCE} s")

    before = signal.signal(signal.SIGALRM, hangs)
    signal.setitimer(signal.ITIMER_REAL, PATIENCE, PATIENCE / 4)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
