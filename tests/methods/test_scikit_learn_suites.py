"""Test files of scikit-learn, with estimators of lokl instead of SVC, SVR and GridSearchCV.

The adapters are in ``scikit_learn_adapters.py``. A test may fail only for a reason in
`DIFFERENCES`; docs/reliability.md shows them. Tests without an adapter pass as for scikit-learn.
"""

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
# Each reason, and the tests that fail for it; see docs/reliability.md.
DIFFERENCES = {
    "a precomputed kernel is one matrix over all samples, training and test": (
        *("test_precomputed", "test_sparse_precomputed", "test_bad_input"),
        *("test_grid_search_precomputed_kernel", "test_pairwise_indices"),
        *("test_pairwise_n_features_in", "test_pairwise_cross_val_score"),
    ),
    "several classes are learned one against the rest; there are no decisions about pairs": (
        *("test_decision_function_shape", "test_svc_invalid_break_ties_param"),
        *("test_svc_ovr_tie_breaking", "test_n_iter_libsvm"),
        *("test_search_cv_results_rank_tie_breaking", "test_rfecv"),
    ),
    "negative sample weights are rejected": (
        *("test_negative_sample_weights_mask_all_samples", "test_negative_weight_equal_coeffs"),
        "test_negative_weights_svc_leave_just_one_label",
        "test_negative_weights_svc_leave_two_labels",
    ),
    "a model that was fitted without probabilities never has any": ("test_hasattr_predict_proba",),
    "C is finite": ("test_svm_with_infinite_C",),
    "the error has another text, or comes from fit instead of predict": (
        *("test_svr_errors", "test_svc_nonfinite_params", "test_no_refit"),
    ),
    "private attributes of SVC": (
        *("test_tweak_params", "test_gamma_scale", "test_svc_raises_error_internal_representation"),
    ),
    "dual coefficients are an array for sparse samples": ("test_sparse_fit_support_vectors_empty",),
    "samples are numbers, also for a kernel function": ("test_custom_kernel_not_array_input",),
    "two iterations of the exact solver are enough here": ("test_libsvm_convergence_warnings",),
    "deprecations of SVC": (
        *("test_probability_raises_futurewarning", "test_svc_nusvc_probA_probB_deprecated"),
    ),
    "the library logs and does not print": ("test_search_cv_verbose_3",),
    "private methods of GridSearchCV": ("test_custom_run_search",),
    "a search has the logarithms of probabilities if its model has probabilities": (
        "test_metaestimator_delegation",
    ),
    "the search has its own callback, not the experimental ones of scikit-learn 1.9": (
        *("test_search_callbacks_no_propagation", "test_search_callbacks_propagation"),
        "test_search_callbacks_receive_sample_weight",
        "test_search_callbacks_with_partial_fit_failures",
    ),
}
KNOWN = {name for names in DIFFERENCES.values() for name in names}
SUITES = {
    "svm": ["svm.tests.test_svm"],
    "search": ["model_selection.tests.test_search"],
    "others": [
        *("tests.test_pipeline", "tests.test_multiclass", "tests.test_multioutput"),
        *("tests.test_calibration", "tests.test_metaestimators"),
        *("ensemble.tests.test_bagging", "ensemble.tests.test_stacking"),
        *("ensemble.tests.test_voting", "ensemble.tests.test_weight_boosting"),
        *("feature_selection.tests.test_rfe", "feature_selection.tests.test_from_model"),
        *("model_selection.tests.test_validation", "metrics.tests.test_score_objects"),
        "model_selection.tests.test_classification_threshold",
        "semi_supervised.tests.test_self_training",
    ],
}
# Minutes of work, for mostly other estimators.
LONG = "others"


@pytest.mark.slow
@pytest.mark.fuzz
@pytest.mark.skipif(
    importlib.util.find_spec("sklearn.svm.tests") is None,
    reason="scikit-learn is installed without its tests",
)
@pytest.mark.parametrize("suite", SUITES)
def test_only_listed_tests_fail(suite, tmp_path):
    if suite == LONG and not os.environ.get("LOKL_FUZZ"):
        pytest.skip("only in make fuzz")
    files = [f"sklearn.{name}" for name in SUITES[suite]]
    options = ["-q", "-rf", "--tb=no", "-c", os.devnull, "--rootdir", str(tmp_path)]
    options += ["-p", "scikit_learn_adapters", "-p", "no:cacheprovider", "-W", "ignore"]
    path = os.pathsep.join([str(HERE), *filter(None, sys.path)])
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, "--pyargs", *files],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    passed = re.search(r"(\d+) passed", done.stdout)
    assert passed, done.stdout[-2000:] + done.stderr[-2000:]
    assert int(passed[1]) > 80
    assert " error" not in done.stdout.splitlines()[-1]
    failed = set(re.findall(r"^FAILED .*::(\w+)", done.stdout, flags=re.MULTILINE))
    assert failed <= KNOWN, sorted(failed - KNOWN)


def test_the_documentation_lists_all_differences():
    page = (HERE.parents[1] / "docs" / "reliability.md").read_text(encoding="utf-8")
    for reason, names in DIFFERENCES.items():
        shown = ", ".join(f"`{name}`" for name in names)
        assert f"| {reason} | {shown} |" in page
