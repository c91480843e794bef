"""Settings can be written to a file, and run again from anywhere."""

import tomllib

import pandas as pd
import pytest
from compare_cases import write_tables
from hypothesis import given
from hypothesis import strategies as st

from lokl.study.settings import Settings, as_toml, load_settings
from lokl.tables import TableError

words = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
plain = st.one_of(words, st.integers(-(2**40), 2**40), st.lists(words, max_size=3))
tables = st.dictionaries(words, st.one_of(plain, st.dictionaries(words, plain)), max_size=4)


@given(content=st.dictionaries(words, tables, max_size=3))
def test_what_is_written_as_toml_is_read_again(content):
    assert tomllib.loads(as_toml(content)) == content


@given(
    kinds=st.dictionaries(words.filter(bool), st.sampled_from(["numeric", "categorical"])),
    na=st.lists(words, max_size=3).map(tuple),
    on=words.filter(bool),
    folds=st.integers(2, 20),
    seed=st.integers(0, 2**31),
    methods=st.lists(words.filter(bool), max_size=3).map(tuple),
)
def test_settings_come_back(tmp_path_factory, **given_settings):
    folder = tmp_path_factory.mktemp("run")
    settings = Settings(("iris",), **given_settings)
    path = folder / "config.toml"
    path.write_text(settings.stored().to_toml(folder), encoding="utf-8", newline="")
    assert load_settings(str(path)) == settings.stored()


def test_paths_are_relative_to_the_file(tmp_path, monkeypatch):
    paths = write_tables(tmp_path)
    monkeypatch.chdir(tmp_path)
    settings = Settings(("left.csv", "right.csv"), on="id", target="known.csv:class")
    place = tmp_path / "deep" / "run"
    place.mkdir(parents=True)
    model = {"candidate": "uniform mix", "sha256": "abc"}
    (place / "config.toml").write_text(settings.stored(model).to_toml(place))
    assert "../../left.csv" in (place / "config.toml").read_text()
    monkeypatch.chdir(place)
    stored = load_settings("config.toml")
    assert stored.model == model
    assert stored.settings.read().frame.equals(
        Settings(
            tuple(paths[k] for k in ("left", "right")), on="id", target=f"{paths['known']}:class"
        )
        .read()
        .frame
    )
    assert stored.settings.stored().identity == stored.identity


def test_sheets_have_the_path_of_their_workbook(tmp_path, monkeypatch):
    with pd.ExcelWriter(tmp_path / "book.xlsx") as book:
        for name, path in write_tables(tmp_path).items():
            pd.read_csv(path).to_excel(book, sheet_name=name, index=False)
    monkeypatch.chdir(tmp_path)
    files, target = ("book.xlsx:left", "book.xlsx:right"), "book.xlsx:known:class"
    settings = Settings(files, on="id", target=target)
    place = tmp_path / "run"
    place.mkdir()
    (place / "config.toml").write_text(settings.stored().to_toml(place))
    assert list(settings.checksums()) == ["book.xlsx"]
    monkeypatch.chdir(place)
    stored = load_settings("config.toml").settings
    assert stored.files == ("../book.xlsx:left", "../book.xlsx:right")
    assert stored.target == "../book.xlsx:known:class"
    assert list(stored.read().views) == ["left", "right"]


def test_a_changed_table_is_another_comparison(tmp_path):
    paths = write_tables(tmp_path)
    settings = Settings((paths["left"],), on="id", target=f"{paths['known']}:class")
    before = settings.stored().identity
    with open(paths["left"], "a") as stream:
        stream.write("S99,1,2,3,red\n")
    after = settings.stored().identity
    assert {name for name in before if before[name] != after[name]} == {"checksum of left.csv"}


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("[data", r"config\.toml is not"),
        ("[data]\non = 'id'\n", "files"),
        ("[data]\nfiles = ['a.csv']\nplot = 'x'\n", "plot"),
        ("[data]\nfiles = 'a.csv'\n", "files .*'a.csv'"),
        ("[data]\nfiles = ['a']\n[comparison]\nfolds = 'many'\n", "folds .*'many'"),
        ("[data]\nfiles = ['a']\n[comparison]\nfolds = true\n", "folds .*True"),
    ],
)
def test_files_that_are_none_of_settings(tmp_path, content, words):
    path = tmp_path / "config.toml"
    path.write_text(content)
    with pytest.raises(TableError, match=words) as caught:
        load_settings(str(path))
    assert "\n" not in str(caught.value)


def test_bytes_that_are_no_text(tmp_path):
    path = tmp_path / "config.toml"
    path.write_bytes(b"\xff\xfe\0")
    with pytest.raises(TableError, match="UTF-8"):
        load_settings(str(path))


def test_what_is_given_overrides():
    settings = Settings(("iris",), folds=7, na=("x",))
    changed = settings.updated(folds=None, seed=0, na=(), target="y", delimiter="")
    assert changed == Settings(("iris",), folds=7, na=("x",), target="y")


def test_names_that_no_settings_file_can_contain(tmp_path):
    settings = Settings(("b\udcff.csv",)).stored()
    with pytest.raises(TableError, match="b\N{REPLACEMENT CHARACTER}"):
        settings.to_toml(tmp_path)
