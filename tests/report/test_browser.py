"""The page in a real browser, where there is one."""

import json
import re
import shutil
import subprocess

import pytest
from report_cases import cases, report

from lokl.report import render

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")

# Does what a reader does, and writes what it sees into the title of the page.
VISIT = """
<script>
window.addEventListener("load", () => {
  const seen = {};
  const find = (id) => document.getElementById(id);
  const first = () => find("leaderboard").tBodies[0].rows[0].cells[0].textContent.trim();
  try {
    seen.card = find("card").textContent;
    const heads = [...find("leaderboard").tHead.rows[0].cells];
    heads[3].querySelector("button").click();
    seen.slowest = first();
    heads[3].querySelector("button").click();
    seen.fastest = first();
    find("pick").value = "P007";
    find("pick").dispatchEvent(new Event("change"));
    seen.picked = find("card").textContent;
    find("pick").value = "nobody";
    find("pick").dispatchEvent(new Event("change"));
    seen.nobody = find("card").textContent;
    find("next-wrong").click();
    seen.wrong = find("card").textContent;
    const mark = document.querySelectorAll("#where-map use")[5];
    mark.dispatchEvent(new MouseEvent("click", { bubbles: true }));
    seen.clicked = find("card").textContent;
    seen.marked = mark.classList.contains("picked");
    document.querySelector("input[name=colour][value=wrong]").click();
    seen.legend = find("where-legend").textContent;
    document.documentElement.style.width = "360px";
    const wide = [...document.querySelectorAll("body *")].filter((node) =>
      !node.closest(".scroll, svg, datalist, .hidden") && node.getBoundingClientRect().right > 361);
    seen.overflow = wide.map((node) => node.tagName + "." + node.className).slice(0, 5);
    seen.contrast = [...document.querySelectorAll("p, td, th, li, button, dt, dd, caption")]
      .map((node) => contrast(node)).reduce((a, b) => Math.min(a, b), 21);
  } catch (error) { seen.error = String(error); }
  seen.dark = matchMedia("(prefers-color-scheme: dark)").matches;
  seen.requests = performance.getEntriesByType("resource").length;
  document.title = JSON.stringify(seen);
});
function channel(v) { v /= 255; return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; }
function light([r, g, b]) {
  return 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
}
function numbers(colour) { return colour.match(/[\\d.]+/g).map(Number); }
function contrast(node) {
  const ink = numbers(getComputedStyle(node).color);
  let paper = [255, 255, 255];
  for (let up = node; up; up = up.parentElement) {
    const found = numbers(getComputedStyle(up).backgroundColor);
    if (found.length < 4 || found[3] > 0) { paper = found; break; }
  }
  const a = light(ink) + 0.05, b = light(paper) + 0.05;
  return Math.max(a, b) / Math.min(a, b);
}
</script>
"""


def visit(page, tmp_path, *options):
    path = tmp_path / "report.html"
    path.write_text(page.replace("</body>", VISIT + "</body>"), encoding="utf-8")
    command = [
        CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr",
        f"--user-data-dir={tmp_path / 'profile'}", "--virtual-time-budget=5000",
        *options, "--dump-dom", path.as_uri(),
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    assert "CONSOLE" not in done.stderr, done.stderr
    title = re.search("<title>(.*?)</title>", done.stdout, re.DOTALL).group(1)
    for name, sign in (("&quot;", '"'), ("&lt;", "<"), ("&gt;", ">"), ("&amp;", "&")):
        title = title.replace(name, sign)
    seen = json.loads(title)
    assert "error" not in seen, seen["error"]
    return seen


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_a_reader_can_sort_pick_and_filter(tmp_path, dark):
    found = cases(60)
    scheme = ["--blink-settings=preferredColorScheme=0"] if dark else []
    seen = visit(render(report(found)), tmp_path, *scheme)
    assert seen["dark"] == dark
    assert seen["slowest"].startswith("forest")
    assert seen["fastest"].startswith("broken")
    assert seen["picked"].startswith("P007: ")
    assert seen["nobody"] == "no sample is called nobody"
    assert "wrong" in seen["wrong"]
    assert seen["marked"]
    assert seen["clicked"] != seen["wrong"]
    assert seen["legend"] == "rightwrong"
    assert seen["overflow"] == []
    assert seen["contrast"] >= 4.5
    assert seen["requests"] == 0


def test_many_samples(tmp_path):
    seen = visit(render(report(cases(10_000, n_views=5))), tmp_path)
    assert seen["picked"].startswith("no sample is called P007") is False
    assert seen["requests"] == 0
