"""Downloads from a real server: checked, whole or not there at all."""

import bz2
import gzip
import logging
import lzma
import os
import socket
import subprocess
import sys
import threading
from functools import partial
from pathlib import Path

import pytest
from dataset_cases import TEXT, tiny

import lokl
from lokl.datasets import DatasetError, MissingDatasetError, fetch, load
from lokl.datasets.loader import cache_folder, download
from lokl.datasets.registry import RECORDS

COMPRESS = {
    "": bytes,
    ".bz2": bz2.compress,
    ".gz": partial(gzip.compress, mtime=0),
    ".xz": lzma.compress,
}


@pytest.mark.parametrize("end", COMPRESS)
def test_a_download_is_stored_as_it_came_and_checked_without_compression(server, cache, end):
    server.pages["tiny" + end] = COMPRESS[end](TEXT)
    path = download(tiny(server.url("tiny" + end)), cache)
    assert path == cache / f"tiny{end}"
    assert path.read_bytes() == COMPRESS[end](TEXT)
    assert os.listdir(cache) == [path.name]


def test_load_downloads_once(server, cache, monkeypatch):
    server.pages["tiny"] = TEXT
    monkeypatch.setitem(RECORDS, "tiny", tiny(server.url("tiny")))
    first, second = load("tiny"), load("tiny")
    assert server.asked == ["/tiny"]
    assert first.data.shape == second.data.shape == (4, 5)
    assert first.checked
    assert second.sha256 == RECORDS["tiny"].sha256


def test_load_downloads_nothing_where_that_is_not_wanted(server, cache, monkeypatch):
    monkeypatch.setitem(RECORDS, "tiny", tiny(server.url("tiny")))
    with pytest.raises(MissingDatasetError, match=r"LOKL_DATA.*`lokl datasets fetch tiny`"):
        load("tiny", download=False)
    assert server.asked == []
    assert not cache.exists()


def test_own_folder_comes_before_the_cache_and_the_network(server, cache, tmp_path, monkeypatch):
    monkeypatch.setitem(RECORDS, "tiny", tiny(server.url("tiny")))
    cache.mkdir()
    (cache / "tiny").write_bytes(TEXT)
    assert fetch("tiny") == (cache / "tiny",)
    own = tmp_path / "own"
    own.mkdir()
    (own / "tiny.gz").write_bytes(gzip.compress(TEXT))
    monkeypatch.setenv("LOKL_DATA", str(own))
    assert fetch("tiny") == (own / "tiny.gz",)
    assert server.asked == []


def test_what_no_sha256_is_known_of_is_counted_and_said(server, cache, caplog):
    server.pages["tiny"] = TEXT
    with caplog.at_level(logging.WARNING, logger="lokl"):
        download(tiny(server.url("tiny"), sha256=None), cache)
    assert "tiny" in caplog.text
    assert "sha256" in caplog.text
    server.pages["tiny"] = TEXT[:20]
    with pytest.raises(DatasetError, match="2 rows, expected 4"):
        download(tiny(server.url("tiny"), sha256=None), cache)
    # The file that was there before stays.
    assert (cache / "tiny").read_bytes() == TEXT
    assert os.listdir(cache) == ["tiny"]


@pytest.mark.parametrize(
    ("path", "content", "words"),
    [
        ("tiny", TEXT.replace(b"5", b"6"), "sha256 .*, expected "),
        ("tiny.bz2", bz2.compress(TEXT)[:-8], "damaged"),
        ("tiny.gz", gzip.compress(TEXT)[:-8], "damaged"),
        ("tiny.xz", b"no archive", "damaged"),
    ],
    ids=["other text", "torn bz2", "torn gz", "no xz"],
)
def test_a_damaged_download_is_deleted_and_said(server, cache, path, content, words):
    server.pages[path] = content
    with pytest.raises(DatasetError, match=words):
        download(tiny(server.url(path)), cache)
    assert os.listdir(cache) == []


def test_a_damaged_file_of_the_cache_is_said_and_fetch_replaces_it(server, cache, monkeypatch):
    server.pages["tiny"] = TEXT
    monkeypatch.setitem(RECORDS, "tiny", tiny(server.url("tiny")))
    cache.mkdir()
    (cache / "tiny").write_bytes(TEXT[:20])
    with pytest.raises(DatasetError, match=r"damaged.*`lokl datasets fetch tiny`"):
        load("tiny")
    fetch("tiny")
    assert load("tiny").checked


@pytest.mark.parametrize("sha256", [None, tiny().sha256])
def test_a_server_that_dies_midway_leaves_nothing(server, cache, sha256):
    def die(request):
        request.send_response(200)
        request.send_header("Content-Length", str(len(TEXT)))
        request.end_headers()
        request.wfile.write(TEXT[:20])

    server.pages["tiny"] = die
    with pytest.raises(DatasetError, match="broke off"):
        download(tiny(server.url("tiny"), sha256=sha256), cache)
    assert os.listdir(cache) == []


def test_the_place_is_empty_until_the_file_is_whole(server, cache):
    half, go_on = threading.Event(), threading.Event()

    def hesitate(request):
        request.send_response(200)
        request.send_header("Content-Length", str(len(TEXT)))
        request.end_headers()
        request.wfile.write(TEXT[:20])
        request.wfile.flush()
        half.set()
        go_on.wait(30)
        request.wfile.write(TEXT[20:])

    server.pages["tiny"] = hesitate
    worker = threading.Thread(target=download, args=(tiny(server.url("tiny")), cache))
    worker.start()
    try:
        assert half.wait(30)
        assert not (cache / "tiny").exists()
    finally:
        go_on.set()
        worker.join()
    assert (cache / "tiny").read_bytes() == TEXT
    assert os.listdir(cache) == ["tiny"]


FETCH = """
import sys
from pathlib import Path
from dataset_cases import tiny
from lokl.datasets.loader import download
{before}
download(tiny(sys.argv[1]), Path(sys.argv[2]))
"""


@pytest.fixture
def start(server, start_process):
    """Start processes that download the small set."""
    paths = [Path(lokl.__file__).parents[1], Path(__file__).parent, os.environ.get("PYTHONPATH")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(str(path) for path in paths if path)}

    def start(cache, before="", stderr=subprocess.PIPE):
        code = FETCH.format(before=before)
        arguments = [sys.executable, "-c", code, server.url("tiny"), str(cache)]
        return start_process(arguments, env=environment, stderr=stderr, text=True)

    return start


def test_a_terminal_sees_a_bar_and_a_log_does_not(server, cache, monkeypatch, start):
    """Standard error is a real pseudo-terminal, then a pipe."""
    pty = pytest.importorskip("pty", reason="pseudo-terminals are POSIX")
    monkeypatch.setenv("TERM", "xterm")
    server.pages["tiny"] = TEXT
    outside, inside = pty.openpty()
    with open(outside, "rb") as stream, open(inside, "wb") as terminal:
        assert start(cache / "one", stderr=terminal).wait(timeout=120) == 0
        assert b"42/42 bytes" in stream.read1(65536)
    process = start(cache / "two")
    said = process.communicate(timeout=120)[1]
    assert process.returncode == 0
    assert "bytes" not in said


def test_two_processes_at_once(server, cache, start):
    both = threading.Barrier(2)

    def together(request):
        both.wait(60)
        request.send_response(200)
        request.send_header("Content-Length", str(len(TEXT)))
        request.end_headers()
        request.wfile.write(TEXT)

    server.pages["tiny"] = together
    for process in [start(cache) for _ in range(2)]:
        _, errors = process.communicate(timeout=120)
        assert process.returncode == 0, errors
    assert server.asked == ["/tiny"] * 2
    assert (cache / "tiny").read_bytes() == TEXT
    assert os.listdir(cache) == ["tiny"]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows limits no file sizes")
def test_a_disk_that_takes_no_more_leaves_nothing(server, cache, start):
    server.pages["tiny"] = TEXT
    limit = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (16, 16))"
    process = start(cache, limit)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 1
    assert errors.splitlines()[-1].startswith("lokl.datasets.readers.DatasetError: cannot write")
    assert "LOKL_CACHE" in errors
    assert os.listdir(cache) == []


def test_a_cache_that_is_no_folder(server, tmp_path):
    server.pages["tiny"] = TEXT
    (tmp_path / "file").write_text("not a folder")
    for folder in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(DatasetError, match=r"tiny.*LOKL_CACHE"):
            download(tiny(server.url("tiny")), folder)
    assert server.asked == []


@pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() == 0, reason="nothing is locked for root"
)
def test_a_locked_cache(server, cache):
    cache.mkdir(mode=0o500)
    with pytest.raises(DatasetError, match=r"Permission denied.*LOKL_CACHE"):
        download(tiny(server.url("tiny")), cache)


def test_no_network(cache, monkeypatch):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with socket.socket() as unused:
        # Bound, but nobody listens.
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}/tiny"
        with pytest.raises(MissingDatasetError, match="no connection to 127") as error:
            download(tiny(url), cache)
    assert "LOKL_DATA" in str(error.value)
    assert "lokl datasets fetch tiny" in str(error.value)
    assert os.listdir(cache) == []


def test_a_file_the_server_does_not_have(server, cache):
    with pytest.raises(MissingDatasetError, match="404"):
        download(tiny(server.url("tiny")), cache)
    assert os.listdir(cache) == []


def test_what_nobody_serves(cache):
    with pytest.raises(MissingDatasetError, match=r"tiny.*LOKL_DATA"):
        download(tiny(None), cache)


@pytest.mark.parametrize("name", ["LOKL_DATA", "LOKL_CACHE"])
def test_without_pooch_the_error_names_the_extra(cache, monkeypatch, name):
    monkeypatch.delenv(name, raising=False)
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(ImportError, match=r"pip install 'lokl\[data\]'"):
        load("a9a")


def test_without_a_name_the_cache_is_the_usual_one(tmp_path, monkeypatch):
    import pooch

    monkeypatch.delenv("LOKL_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == Path(pooch.os_cache("lokl"))
