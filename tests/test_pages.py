"""Pages agree with each other and with the files they point to, and look right in a browser.

Nothing is fetched. The site is only looked at if ``make docs`` has built it.
"""

import gzip
import re
from pathlib import Path
from urllib.parse import unquote

import pytest

from browser import CHROMIUM, Browser

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


SITE = DOCS / "_build/html"
# Parts of the page that do not scroll by themselves and reach beyond the screen.
BEYOND = """
[...document.querySelectorAll("main *, header *")]
  .filter((node) => node.checkVisibility() && node.getBoundingClientRect().right > innerWidth + 1)
  .filter((node) => {
    for (let own = node; own; own = own.parentElement)
      if (["auto", "scroll", "hidden"].includes(getComputedStyle(own).overflowX)) return false;
    return true;
  })
  .map((node) => node.tagName + "." + node.className).slice(0, 5)
"""
BACKGROUND = """
[document.body, document.documentElement].map((node) => getComputedStyle(node).backgroundColor)
  .find((colour) => colour !== "rgba(0, 0, 0, 0)")
"""
SHOWN = {
    "landing page": "index.html",
    "example": "gallery/views/plot_three_tables.html",
    "reference": "generated/lokl.kernels.RBF.html",
    "charts": "choosing.html",
    "report": "wine_report.html",
}


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    found = Browser(tmp_path_factory.mktemp("browser"))
    yield found
    found.close()


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")
@pytest.mark.skipif(not (SITE / "wine_report.html").exists(), reason="make docs has not been run")
@pytest.mark.parametrize("page", SHOWN.values(), ids=SHOWN)
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [360, 1280])
def test_pages_fit_the_screen_and_give_no_errors(browser, page, dark, width):
    browser.open(SITE / page, width=width, dark=dark)
    # The theme logs which of its modes it shows.
    assert [one for one in browser.complaints() if one["params"].get("type") != "log"] == []
    assert browser.see(BEYOND) == []
    assert browser.see("document.documentElement.scrollWidth") <= width
    red, green, blue = map(int, re.findall(r"\d+", browser.see(BACKGROUND))[:3])
    assert (red + green + blue < 3 * 128) == dark


@pytest.mark.slow
@pytest.mark.skipif(not (SITE / "wine_report.html").exists(), reason="make docs has not been run")
def test_the_landing_page_shows_a_live_report():
    shown = re.findall('<iframe.*src="([^"]*)"', (SITE / "index.html").read_text())
    assert ["Three kinds of wine" in (SITE / name).read_text() for name in shown] == [True]


@pytest.mark.slow
@pytest.mark.skipif(not (SITE / "wine_report.html").exists(), reason="make docs has not been run")
def test_the_site_is_small():
    files = [path for path in SITE.rglob("*") if path.is_file() and ".doctrees" not in path.parts]
    assert sum(path.stat().st_size for path in files) < 60e6
    page = SITE / "index.html"
    loaded = re.findall(r'(?:src|href)="([^"?#:]+\.(?:js|css))', page.read_text())
    # Servers compress.
    parts = [page, *map(SITE.joinpath, {*loaded})]
    sent = [len(gzip.compress(path.read_bytes())) for path in parts]
    assert len(sent) > 10
    assert sum(sent) < 300e3
