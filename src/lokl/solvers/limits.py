"""Steps that are far more than a problem needs on scaled data: where solvers stop by default."""

# Entries of rows that may be looked at, and what a step costs beside them.
_WORK, _OVERHEAD = 6e9, 200
# Steps for each sample that a large problem may need at least.
_STEPS_A_SAMPLE = 1000
# Rounds of working sets, each of which costs as much as thousands of steps in a small set.
_ROUNDS, _ROUNDS_A_SAMPLE = 5000, 0.1
# Times that rows are computed anew, where the memory holds so few that most rounds miss one.
_FETCHES, _FETCHES_A_SAMPLE = 20_000, 100
# Rounds in which an objective must fall by more than rounding does, at least and by sample.
_PATIENCE, _PATIENCE_A_SAMPLE = 1000, 10


def enough_steps(n_samples: int, working_set: int, share: float = 1.0) -> int:
    """Pair moves of a working set; a solver that is slower at them takes a smaller `share`."""
    return int(max(share * _WORK / (working_set + _OVERHEAD), _STEPS_A_SAMPLE * n_samples))


def enough_rounds(n_samples: int) -> int:
    """Working sets, whatever their size."""
    return int(max(_ROUNDS, _ROUNDS_A_SAMPLE * n_samples))


def enough_fetches(n_samples: int) -> int:
    """Times that rows which are not in memory may be computed for multiplicative weights."""
    return max(_FETCHES, _FETCHES_A_SAMPLE * n_samples)


def enough_patience(n_samples: int) -> int:
    """Rounds of multiplicative weights that may pass without a fall of the objective."""
    return max(_PATIENCE, _PATIENCE_A_SAMPLE * n_samples)
