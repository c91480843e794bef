"""Types and meanings of fitted attributes that several methods share, for the reference."""

# Name of an attribute to its type and meaning.
Attributes = dict[str, tuple[str, str]]

# Of every estimator, as scikit-learn notes them.
COLUMNS: Attributes = {
    "n_features_in_": ("int", ""),
    "feature_names_in_": ("array of str", "Where the training samples came with column names."),
}
WEIGHTS_OF_SUM_ONE = ("array of shape (n_kernels,)", "Weight of each kernel; they sum to one.")
WEIGHTS_OF_NORM_ONE = ("array of shape (n_kernels,)", "Weight of each kernel, of norm one.")
FALLING = ("array", "Objective after every round, falling.")
WAVERING = ("array", "Objective after every round; it may rise for a round.")
CERTIFIED = (
    "float",
    "Certified: the objective is at most this far from the optimum over weights and machines.",
)
NOT_CONVEX = ("float", "NaN: the problem is not convex, no distance from the optimum is known.")
