"""The page of a report in headless Chromium: its size, and how soon a reader can use it."""

import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.common import MissingDataError, Options, Report, main
from lokl.report import render

# The browser and the study that tests of the page use.
sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "report"))

# Samples and views, and the kilobytes and seconds that are allowed.
SIZES = {(500, 5): (400, 1.0), (10_000, 5): (1500, 2.0)}
OPENED = 5
# From the request of the page until everything it does on its own is done.
LOADED = "performance.getEntriesByType('navigation')[0].loadEventEnd"
# From a click on the page until the browser has drawn what it changed.
ANSWERED = """new Promise(done => {
  const begun = performance.now();
  document.querySelector('#verdict button[data-select="answer=wrong"]').click();
  requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now() - begun)));
})"""


def opened(browser: Any, page: Path) -> tuple[float, float]:
    """Seconds until a page is ready, and until it has answered a click."""
    browser.open(page)
    loaded = browser.see(LOADED) / 1000.0
    found = browser.call(
        "Runtime.evaluate", expression=ANSWERED, returnByValue=True, awaitPromise=True
    )
    return loaded, found["result"]["value"] / 1000.0


def run(options: Options, report: Report) -> None:
    from browser import CHROMIUM, Browser
    from study_cases import like_a_study

    if CHROMIUM is None:
        raise MissingDataError("chromium is not installed")
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        browser = Browser(folder)
        try:
            for samples, views in SIZES:
                page = Path(folder) / f"{samples}.html"
                page.write_text(render(like_a_study(samples, views, 4)), encoding="utf-8")
                seconds = np.array([opened(browser, page) for _ in range(OPENED)])
                ready, answer = np.median(seconds, axis=0)
                rows.append(
                    {
                        "samples": samples,
                        "views": views,
                        "kB": page.stat().st_size / 1000,
                        "ready, s": float(ready),
                        "slowest, s": float(seconds[:, 0].max()),
                        "answer to a click, s": float(answer),
                    }
                )
        finally:
            browser.close()
    report.table(f"pages, medians of {OPENED}", rows)
    for row, (kilobytes, seconds) in zip(rows, SIZES.values(), strict=True):
        name = f"{row['samples']} samples"
        report.target(f"{name}: kB", row["kB"], "<=", kilobytes)
        report.target(f"{name}: seconds until ready", row["ready, s"], "<=", seconds)


if __name__ == "__main__":
    main(run)
