"""Records of finished cells: nothing is lost."""

import gzip
import json
import sys
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lokl.paper import Cell, RecordFile

CELLS = [
    Cell("iris", "UNIFORM", "quadratic, Gaussian", gamma, split=s)
    for gamma in (0.25, 1.0)
    for s in range(3)
]


def done(cell, **measured):
    """The record of a cell that did not fail."""
    return {
        **vars(cell),
        "accuracy": 0.5,
        "support": 0.5,
        "fit_seconds": 0.1,
        "error": None,
        **measured,
    }


@given(cut=st.integers(0, 400))
def test_a_torn_last_line_is_cut_off(tmp_path_factory, cut):
    path = tmp_path_factory.mktemp("torn") / "records.jsonl"
    records = RecordFile(path)
    for k, cell in enumerate(CELLS[:3]):
        records.add(done(cell, accuracy=k / 10))
    whole = path.read_bytes()
    path.write_bytes(whole[: max(len(whole) - cut, 0)])
    kept = RecordFile(path)
    lines = path.read_bytes()
    assert lines == whole[: len(lines)]
    assert lines.endswith(b"\n") or not lines
    assert len(kept) == lines.count(b"\n")
    for cell in CELLS[:3]:
        if cell not in kept:
            kept.add(done(cell))
    assert len(RecordFile(path)) == 3


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (b"no json", "Expecting value"),
        (b"\xff{}", "'utf-8' codec"),
        (b"[1, 2]", r"a record is a JSON object, not \[1, 2\]"),
        (b'{"data": "iris"}', "missing: method, dictionary, .*, error, accuracy, support, fit_s"),
    ],
)
def test_damage_elsewhere_is_named(tmp_path, line, words):
    path = tmp_path / "records.jsonl"
    path.write_bytes(line_of(CELLS[0]) + line + b"\n")
    with pytest.raises(ValueError, match=rf"records\.jsonl, line 2 .*\({words}"):
        RecordFile(path)


@pytest.mark.parametrize("name", [*vars(CELLS[0]), "accuracy", "support", "fit_seconds", "error"])
@pytest.mark.parametrize("failed", [False, True])
def test_a_record_that_tables_cannot_show_is_named(tmp_path, name, failed):
    path = tmp_path / "records.jsonl"
    record = done(CELLS[0], error="it failed" if failed else None)
    lacking = {key: value for key, value in record.items() if key != name}
    needed = not failed or name not in ("accuracy", "support", "fit_seconds")
    changes = [(lacking, f"missing: {name}"), ({**record, name: []}, f"{name} is")]
    for changed, words in changes:
        path.write_text(json.dumps(changed) + "\n")
        if needed:
            with pytest.raises(ValueError, match=rf"line 1 .*\({words}"):
                RecordFile(path)
        else:
            assert len(RecordFile(path)) == 1


@pytest.mark.parametrize("value", [float("nan"), float("inf"), True, "0.5", None])
def test_an_accuracy_is_a_number(tmp_path, value):
    path = tmp_path / "records.jsonl"
    with pytest.raises(ValueError, match="accuracy"):
        RecordFile(path).add(done(CELLS[0], accuracy=value))
    assert not path.exists()


def test_an_archive_is_read_before_the_file(tmp_path):
    path = tmp_path / "records.jsonl"
    archive = tmp_path / "records.jsonl.gz"
    content = gzip.compress(b"".join(map(line_of, CELLS)))
    archive.write_bytes(content)
    records = RecordFile(path)
    assert all(cell in records for cell in CELLS)
    # New records go into a file next to it, and later ones count.
    records.add(done(CELLS[0], accuracy=1.0))
    assert RecordFile(path).of(CELLS[:1])[0]["accuracy"] == 1.0
    assert archive.read_bytes() == content
    archive.write_bytes(content[:-20])
    with pytest.raises(ValueError, match=r"records\.jsonl\.gz"):
        RecordFile(path)


def line_of(cell):
    return json.dumps(done(cell)).encode() + b"\n"


def test_a_reader_waits_for_the_line_that_is_being_written(tmp_path):
    fcntl = pytest.importorskip("fcntl", reason="files are locked on POSIX only")
    path = tmp_path / "records.jsonl"
    path.write_bytes(line_of(CELLS[0]))
    found = []
    reader = threading.Thread(target=lambda: found.extend(RecordFile(path)))
    with path.open("ab", buffering=0) as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        stream.write(line_of(CELLS[1])[:20])
        reader.start()
        reader.join(0.2)
        waits = reader.is_alive()
        stream.write(line_of(CELLS[1])[20:])
    reader.join()
    assert waits
    assert [Cell.of(record) for record in found] == CELLS[:2]


def test_a_line_torn_while_the_file_is_in_use_is_cut_off(tmp_path):
    path = tmp_path / "records.jsonl"
    records = RecordFile(path)
    records.add(done(CELLS[0]))
    with path.open("ab") as killed:
        killed.write(line_of(CELLS[1])[:-1])
    records.add(done(CELLS[2]))
    assert [Cell.of(record) for record in RecordFile(path)] == [CELLS[0], CELLS[2]]
    path.write_bytes(b'{"torn')
    records.add(done(CELLS[2]))
    assert [Cell.of(record) for record in RecordFile(path)] == [CELLS[2]]


def test_records_are_read_where_files_cannot_be_locked(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "fcntl", None)
    path = tmp_path / "records.jsonl"
    RecordFile(path).add(done(CELLS[0]))
    with path.open("ab") as stream:
        stream.write(b'{"torn')
    records = RecordFile(path)
    records.add(done(CELLS[1]))
    assert [Cell.of(record) for record in RecordFile(path)] == CELLS[:2]


@pytest.mark.slow
def test_runs_that_share_a_file_do_not_disturb_each_other(tmp_path, start_process):
    """Two processes write while this one opens the file, and mends it, again and again."""
    code = (
        "import sys; from lokl.paper import *; r = RecordFile(sys.argv[1])\n"
        "for k in range(100):\n"
        "    cell = Cell(sys.argv[2], 'LMKL', 'x' * 3000, None, split=k)\n"
        "    r.add({**vars(cell), 'error': 'it failed'})"
    )
    path = tmp_path / "records.jsonl"
    path.touch()
    writers = [start_process([sys.executable, "-c", code, str(path), name]) for name in "ab"]
    while any(writer.poll() is None for writer in writers):
        RecordFile(path)
    assert [writer.returncode for writer in writers] == [0, 0]
    assert len(RecordFile(path)) == len(path.read_bytes().splitlines()) == 200
