"""Random tests draw the same cases on every machine."""

import importlib
import sys

from hypothesis import given, settings
from hypothesis import strategies as st


def _drawn():
    seen = []

    @settings(derandomize=True, max_examples=300, database=None)
    @given(st.integers(0, 10**9))
    def draw(number):
        seen.append(number)

    draw()
    return seen


def test_cases_do_not_depend_on_the_modules_imported_before(tmp_path, monkeypatch):
    before = _drawn()
    numbers = [10_007 * i for i in range(900, 1900)]
    (tmp_path / "numbers_of_lokl.py").write_text(f"NUMBERS = {numbers}\n")
    monkeypatch.syspath_prepend(tmp_path)
    importlib.import_module("numbers_of_lokl")
    try:
        assert _drawn() == before
    finally:
        del sys.modules["numbers_of_lokl"]
