"""``lokl datasets``."""

import json
import sys

import pytest
from dataset_cases import TEXT, tiny
from typer.testing import CliRunner

from lokl.cli.app import app
from lokl.datasets import available
from lokl.datasets.registry import RECORDS

runner = CliRunner()


def run(*arguments):
    return runner.invoke(app, ["datasets", *arguments])


def test_the_table_names_every_set(cache):
    result = run("list")
    assert result.exit_code == 0, result.output
    for word in [*available(), "scikit-learn", "download", "not available"]:
        assert word in result.stdout


def test_records_say_where_a_set_is(server, cache, tmp_path, monkeypatch):
    monkeypatch.setitem(RECORDS, "tiny", tiny(server.url("tiny")))

    def where():
        found = {row["name"]: row for row in json.loads(run("list", "--json").stdout)}
        assert list(found) == available()
        return found["tiny"]["where"]

    assert where() == "download"
    cache.mkdir()
    (cache / "tiny").write_bytes(TEXT)
    assert where() == "cache"
    (tmp_path / "tiny").write_bytes(TEXT)
    monkeypatch.setenv("LOKL_DATA", str(tmp_path))
    assert where() == "LOKL_DATA"


def test_fetch_downloads_what_is_not_here(server, cache, monkeypatch):
    server.pages["tiny"] = TEXT
    monkeypatch.setitem(RECORDS, "tiny", tiny(server.url("tiny")))
    first = run("fetch", "tiny", "iris")
    assert first.exit_code == 0, first.output
    assert f"tiny: downloaded to {cache / 'tiny'}" in first.stdout
    assert "iris: part of scikit-learn, nothing to download" in first.stdout
    assert (cache / "tiny").read_bytes() == TEXT
    assert f"tiny: already at {cache / 'tiny'}" in run("fetch", "tiny").stdout
    assert server.asked == ["/tiny"]


def test_fetch_needs_no_size_from_the_server(server, cache, monkeypatch):
    def without_length(request):
        request.send_response(200)
        request.end_headers()
        request.wfile.write(TEXT)

    server.pages["tiny"] = without_length
    monkeypatch.setitem(RECORDS, "tiny", tiny(server.url("tiny")))
    assert run("fetch", "tiny").exit_code == 0


def test_a_misspelt_name_is_told_before_anything_is_downloaded(server, cache, monkeypatch):
    server.pages["tiny"] = TEXT
    monkeypatch.setitem(RECORDS, "tiny", tiny(server.url("tiny")))
    result = run("fetch", "tiny", "a9")
    assert result.exit_code == 2
    assert "did you mean a9a" in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert server.asked == []


@pytest.mark.parametrize("arguments", [["fetch"], ["walk"], ["list", "--nothing"]])
def test_bad_arguments_exit_with_2(arguments):
    assert run(*arguments).exit_code == 2


def test_list_with_a_folder_that_is_none(cache, tmp_path, monkeypatch):
    monkeypatch.setenv("LOKL_DATA", str(tmp_path / "nowhere"))
    result = run("list")
    assert result.exit_code == 2
    assert "LOKL_DATA" in result.stderr


def test_a_failed_download_is_one_line(server, cache, monkeypatch):
    monkeypatch.setitem(RECORDS, "tiny", tiny(server.url("tiny")))
    result = run("fetch", "tiny")
    assert result.exit_code == 1
    assert "404" in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_fetch_without_pooch(cache, monkeypatch):
    monkeypatch.setitem(sys.modules, "pooch", None)
    result = run("fetch", "a9a")
    assert result.exit_code == 1
    assert "lokl[data]" in result.stderr


@pytest.mark.parametrize("command", ["list", "fetch"])
def test_help_has_an_example(command):
    assert "Example: lokl datasets" in run(command, "--help").stdout
