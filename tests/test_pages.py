"""Pages agree with each other and with the files they point to. Nothing is fetched or executed."""

import re
from pathlib import Path
from urllib.parse import unquote

import pytest

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = sorted(
    page.relative_to(ROOT).as_posix()
    for page in [*ROOT.glob("*.md"), *DOCS.rglob("*.md")]
    if not {"_build", "generated", "gallery"} & set(page.relative_to(ROOT).parts)
)
NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")


def slug(heading):
    """Return the anchor of a heading, as GitHub and MyST make it."""
    return re.sub(r"[^\w\- ]", "", heading.replace("`", "").lower()).strip().replace(" ", "-")


def anchors(text):
    headings = re.findall(r"^#+ (.*)$", text, flags=re.M)
    return {*map(slug, headings), *re.findall(r"^\(([\w-]+)\)=$", text, flags=re.M)}


def without_code(text):
    return re.sub(r"```(?!\{).*?```|`[^`\n]*`", "", text, flags=re.S)


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_to_files_and_headings_that_exist(page):
    path = ROOT / page
    for target in re.findall(r"\]\(([^)\s]+)\)", without_code(path.read_text())):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = unquote(target).partition("#")
        found = path.parent / name if name else path
        if name.startswith("generated/"):
            continue  # Sphinx warns if it is missing.
        if "gallery/" in name:
            script = name.split("gallery/")[1].removesuffix(".rst").removesuffix("index")
            found = ROOT / "examples" / (script and f"{script}.py")
        assert found.exists(), target
        if anchor and found.suffix == ".md":
            assert anchor in anchors(found.read_text()), target


def numbers_of_tables(text):
    """Numbers in the cells of all tables, without their headers."""
    rows = re.findall(r"(?<=\n)\|(?! ---).*(?!\n\| ---)", re.sub(r"\n\|.*\n\| ---.*", "", text))
    return {number for row in rows for number in NUMBER.findall(row)}


@pytest.mark.parametrize(
    ("short", "long"),
    [
        ("benchmarks.md", ["results/benchmarks/*.md"]),
        ("paper.md", ["results/paper.md", "results/table2.md", "results/table4.md"]),
    ],
)
def test_short_tables_state_numbers_of_the_complete_ones(short, long):
    stated = numbers_of_tables((DOCS / short).read_text())
    complete = "\n".join(path.read_text() for one in long for path in DOCS.glob(one))
    assert len(stated) > 40
    assert not stated - set(NUMBER.findall(complete))
