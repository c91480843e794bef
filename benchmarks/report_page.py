"""Report page in headless Chromium: its size, and the time until it can be used."""

import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.common import MissingDataError, Options, Report, main
from lokl.report import render

# Browser and study of the tests of the page.
TESTS = Path(__file__).parent.parent / "tests"
sys.path[:0] = [str(TESTS), str(TESTS / "report")]

# Samples and views, and limits in kilobytes and seconds.
SIZES = {(500, 5): (400, 1.0), (10_000, 5): (1500, 2.0)}
OPENED = 5
# From the request of the page until it is idle.
LOADED = "performance.getEntriesByType('navigation')[0].loadEventEnd"
# From a click on the page until the browser has drawn the result.
ANSWERED = """new Promise(done => {
  const begun = performance.now();
  document.querySelector('#verdict button[data-select="answer=wrong"]').click();
  requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now() - begun)));
})"""


def opened(browser: Any, page: Path) -> tuple[float, float]:
    """Return the seconds until a page is ready, and from a click to its result."""
    browser.open(page)
    loaded = browser.see(LOADED) / 1000.0
    found = browser.call(
        "Runtime.evaluate", expression=ANSWERED, returnByValue=True, awaitPromise=True
    )
    return loaded, found["result"]["value"] / 1000.0


def run(options: Options, report: Report) -> None:
    from study_cases import like_a_study

    from browser import CHROMIUM, Browser

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
                        "maximum, s": float(seconds[:, 0].max()),
                        "response to a click, s": float(answer),
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
