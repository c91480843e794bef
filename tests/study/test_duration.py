"""Expected duration of a comparison."""

from compare_cases import experiment_of, read, write_tables

from lokl.study.duration import RunClock
from lokl.study.experiment import CandidateSplit


def test_finished_fits_replace_expectations(tmp_path):
    experiment = experiment_of(read(write_tables(tmp_path)), ["uniform mix", "majority"])
    cells = [CandidateSplit(name, k) for k in range(3) for name in experiment.candidates]
    clock = RunClock(cells, experiment.candidates, experiment.samples, jobs=1)
    assert clock.current == "uniform mix"
    last = clock.estimate()
    for cell in cells:
        seconds = {"uniform mix": 5.0, "majority class": 0.5}[cell.candidate]
        clock.finished({**vars(cell), "error": None, "cell seconds": seconds})
    # The report is left.
    assert clock.current == ""
    assert clock.estimate() < last
    clock = RunClock(cells, experiment.candidates, experiment.samples, jobs=1)
    for cell in cells[:2]:
        seconds = {"uniform mix": 5.0, "majority class": 0.5}[cell.candidate]
        clock.finished({**vars(cell), "error": None, "cell seconds": seconds})
    assert 11 <= clock.estimate() <= 11 + 3
    assert 0 <= clock.share <= 1
    # A slow machine makes unfinished candidates slower as well.
    slow = RunClock(cells, experiment.candidates, experiment.samples, jobs=1)
    before = slow.estimate()
    slow.finished({**vars(cells[0]), "error": None, "cell seconds": 100.0})
    assert slow.estimate() > 10 * before
    # A fit that failed says nothing about the others.
    slow = RunClock(cells, experiment.candidates, experiment.samples, jobs=1)
    slow.finished({**vars(cells[0]), "error": "ValueError: no"})
    assert slow.estimate() < before
