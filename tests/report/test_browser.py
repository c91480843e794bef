"""The page in a real browser, where there is one."""

import json
import os
import subprocess
import time
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from looks import AXES, CARD, CONTRAST, STATE, STICKS_OUT, STOPS, TOO_WIDE, visible
from report_cases import examples, explanation, report
from study_cases import like_a_study

from browser import CHROMIUM, Browser
from lokl.report import render

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed"),
]


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    found = Browser(tmp_path_factory.mktemp("browser"))
    yield found
    found.close()


@pytest.fixture(scope="module")
def study():
    return render(like_a_study())


def is_quiet(browser):
    assert browser.complaints() == []
    assert browser.requests() == []


QUICK = [name for name in examples() if name not in {"regression", "fitted"}]


@pytest.mark.parametrize("name", QUICK)
@pytest.mark.parametrize("width", [360, 1220])
def test_every_kind_of_report_is_shown_without_complaint(browser, name, width):
    browser.open(render(examples()[name]()), width=width)
    is_quiet(browser)
    assert browser.see(TOO_WIDE) == []
    assert browser.see(STICKS_OUT) == []
    assert browser.see("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("name", ["study", "two-classes", "ten-views", "fitted", "regression"])
@pytest.mark.parametrize("width", [390, 1200])
def test_dots_lie_under_their_ticks(browser, name, width):
    content = examples()[name]()
    browser.open(render(content), width=width)
    for choice in range(browser.count("input[name=score]") or 1):
        if choice:
            browser.click(f"input[name=score][value='{choice}']")
        dots, overlaps, off = browser.see(AXES)
        assert dots >= len(content.views)
        assert overlaps == []
        assert off == []


def test_a_score_is_chosen_without_scripts(browser, study):
    browser.open(study, scripts=False)
    shown = visible(".board")
    assert browser.see(shown) == 1
    browser.click("input[name=score][value='3']")
    assert browser.see(shown) == 1
    assert browser.see(visible("[data-score='3']")) == 1
    assert browser.text("[data-score='3'] caption").startswith(
        "log loss, held out; lower is better"
    )
    first = "[data-score='3'] tbody tr th"
    assert browser.text(first).startswith("trusted vote")


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_words_can_be_read(browser, study, dark):
    browser.open(study, dark=dark)
    assert browser.see('matchMedia("(prefers-color-scheme: dark)").matches') == dark
    browser.click('button[data-select="lead=1"]')
    for _ in range(2):
        contrast, who = browser.see(CONTRAST)
        assert contrast >= 4.5, who
        browser.see('document.querySelectorAll("details").forEach((own) => { own.open = true; })')


def test_a_page_without_scripts_shows_everything_but_its_buttons(browser, study):
    browser.open(study)
    with_scripts = browser.see("document.querySelectorAll('svg, table').length")
    browser.open(study, scripts=False)
    # The debugging protocol still looks; the page itself does nothing.
    assert browser.see("document.querySelectorAll('svg, table').length") == with_scripts
    assert browser.see(visible("button, input:not([name=score])")) == 0
    assert browser.see("document.getElementById('where-map').getBoundingClientRect().height") > 200
    assert browser.see("document.getElementById('trust-map').getBoundingClientRect().height") > 200
    assert "probability" in browser.text("#card-prediction")


def test_tables_are_sorted_by_a_click_and_by_a_key(browser, study):
    browser.open(study)
    first = "#leaderboard tbody tr th"
    head = "#leaderboard thead th:nth-child(5)"
    browser.click(f"{head} button")
    assert browser.text(first).startswith("trusted vote")
    browser.click(f"{head} button")
    assert browser.text(first).startswith("majority class")
    assert browser.see(f"document.querySelector({json.dumps(head)}).ariaSort") == "ascending"
    browser.see(f"document.querySelector('{head} button').focus()")
    browser.press("Enter")
    assert browser.see(f"document.querySelector({json.dumps(head)}).ariaSort") == "descending"
    browser.click("#leaderboard thead th:nth-child(2) button")
    rows = browser.see(
        "[...document.querySelectorAll('#leaderboard tbody tr')]"
        ".map((row) => row.cells[1].dataset.value)"
    )
    known = [float(value) for value in rows if value]
    assert known == sorted(known, reverse=True)
    # Who failed has no score and stays last, whatever the order.
    assert rows[-1] == ""
    browser.click("#leaderboard thead th:nth-child(1) button")
    names = browser.see(
        "[...document.querySelectorAll('#leaderboard tbody th')].map((own) => own.dataset.value)"
    )
    assert names == sorted(names, key=str.lower)
    is_quiet(browser)


def test_a_sample_is_found_by_its_id(browser, study):
    content = like_a_study()
    found = content.explanation
    browser.open(study)
    browser.click("#pick")
    browser.write("P007")
    assert browser.text("#card-name") == "P007"
    assert browser.text("#card-prediction").startswith(found.predictions[7] + ", probability")
    assert browser.text("#card-truth") == found.truth[7]
    browser.click("#pick")
    browser.write("p0")
    assert browser.count("#all-ids option") == 20
    browser.press("Enter")
    assert browser.text("#pick-words").startswith("No sample p0. There are P000, P001, P002")
    browser.see("document.getElementById('pick').select()")
    browser.write("149")
    browser.press("Tab")
    assert browser.text("#card-name") == "P149"
    browser.click("#next")
    assert browser.text("#card-name") == "P000"
    browser.click("#before")
    assert browser.text("#card-name") == "P149"
    is_quiet(browser)


FILLED = ["study", "two-classes", "no-truth", "no-trust", "regression", "fitted", "sets"]


@pytest.mark.parametrize("name", FILLED)
def test_the_script_fills_the_card_as_the_library_does(browser, name):
    content = examples()[name]()
    browser.open(render(content), scripts=False)
    drawn = browser.see(CARD)
    browser.open(render(content))
    filled = browser.see(CARD)
    assert filled[0] == drawn[0]
    assert filled[1] == drawn[1]
    for ours, theirs in zip(filled[2], drawn[2], strict=True):
        assert ours[:2] == theirs[:2]
        assert ours[2] == pytest.approx(theirs[2], abs=0.41)


def check_selected(browser, numbers, words):
    found = browser.see(STATE)
    names = {f"P{k:03d}" for k in numbers}
    assert found["shown"]
    assert found["words"].startswith(f"{len(numbers)} of 150 samples selected: {words}")
    assert found["bright"] == found["rows"] == found["glance"] == len(numbers)
    assert found["ringed"] == 1
    assert set(found["listed"]) <= names | {""}
    assert found["picked"] in names
    assert found["field"] == found["picked"]
    assert found["marked"] == found["here"] == 1
    assert f"{len(numbers)} selected samples" in found["trust"]


def test_what_is_selected_anywhere_is_selected_everywhere(browser, study):
    found = like_a_study().explanation
    lead = np.where(found.presence, found.contributions, -np.inf).argmax(axis=1)
    lacks = ~found.presence
    truth = found.truth_codes
    both, status = truth + found.predicted_codes, found.status
    hinges = (status == "hinges") & found.decisive[:, 0] & (found.decisive.sum(axis=1) == 1)
    browser.open(study)
    before = browser.see(STATE)
    for selector, chosen, words in [
        ('#where-legend button[data-select="lead=1"]', lead == 1, "led by mirna"),
        ('.legend button[data-select="truth=2"]', truth == 2, "class Her2"),
        ('#trust-groups button[data-select="truth=1"]', truth == 1, "class Basal"),
        ('#verdict button[data-select="status=contradict"]', status == "contradict", "views contr"),
        ('#glance button[data-select="state=0"]', status == "agree", "all agree"),
        ('#glance button[data-select="state=1"]', hinges, "hinges on mrna"),
        ('#worth button[data-select="decisive=1"]', found.decisive[:, 1], "mirna is decisive"),
        ('#verdict button[data-select="lacks=any"]', lacks.any(axis=1), "samples that lack"),
        ('#confusion button[data-select="truth=0&predicted=0"]', both == 0, "LumA predicted"),
        ('#patterns button[data-select="lacks=2"]', lacks[:, 2] & ~lacks[:, 1], "without protein"),
    ]:  # fmt: skip
        browser.click(selector)
        check_selected(browser, np.flatnonzero(chosen), words)
        pressed = f"document.querySelector({json.dumps(selector)}).ariaPressed"
        assert browser.see(pressed) == "true"
        # The same words again, or Escape, show all.
        if "lacks" in selector:
            browser.press("Escape")
        else:
            browser.click(selector)
        assert browser.see(pressed) == "false"
        after = browser.see(STATE)
        assert not after["shown"]
        assert after["bright"] == after["glance"] == 150
        assert (after["rows"], after["listed"]) == (before["rows"], before["listed"])
    assert before["rows"] == (status != "agree").sum()
    browser.click('#trust button[data-select="all=1"]')
    assert browser.see(STATE)["rows"] == 150
    is_quiet(browser)


def test_the_confusion_matrix_is_large(browser, study):
    browser.open(study, width=1200)
    _, _, width, height = browser.box("#confusion td.right")
    assert min(width, height) >= 80
    # The leaderboard has the only interval of the accuracy.
    assert " to " not in browser.text("#believe p")
    # Dots of the calibration are samples of their own, which no line joins.
    assert browser.count("#calibration polyline") == 0
    assert browser.count("#calibration circle") == browser.count("#bins tbody tr")


@pytest.mark.parametrize("width", [390, 1200])
def test_samples_lie_in_their_columns_at_their_probabilities(browser, study, width):
    found = like_a_study().explanation
    browser.open(study, width=width)
    ticks = browser.see(
        "[...document.querySelectorAll('.glance-axis b')].map((own) => {"
        "const box = own.getBoundingClientRect();"
        "return [Number(own.textContent), box.top + box.height / 2]; })"
    )
    marks = browser.see(
        "[...document.querySelectorAll('#glance-marks use')].map((own) => {"
        "const box = own.getBoundingClientRect();"
        "return [box.left + box.width / 2, box.top + box.height / 2, own.getAttribute('href')]; })"
    )
    columns = browser.see(
        "[...document.querySelectorAll('.glance-heads > span')].map((own) => {"
        "const box = own.getBoundingClientRect(); return [box.left, box.right]; })"
    )
    assert len(marks) == len(found)
    drawn = np.array([mark[:2] for mark in marks])
    # Both are in log-odds, from the top: the order is that of the probabilities.
    chances, tops = np.array(ticks).T
    logit = np.log(chances / (1 - chances))
    slope, start = np.polyfit(logit, tops, 1)
    np.testing.assert_allclose(start + slope * logit, tops, atol=1.0)
    p = np.clip(found.predicted_probability, 0.01, 0.999)
    expected = np.sort(start + slope * np.log(p / (1 - p)))
    np.testing.assert_allclose(np.sort(drawn[:, 1]), expected, atol=1.5)
    inside = [((drawn[:, 0] > a - 1) & (drawn[:, 0] < b + 1)).sum() for a, b in columns]
    heads = browser.see(
        "[...document.querySelectorAll('.glance-heads b')].map((own) => Number(own.textContent))"
    )
    assert inside == heads
    assert sum(heads) == len(found)
    assert sum(mark[2] == "#g1" for mark in marks) == found.wrong.sum()


def test_a_click_near_a_symbol_picks_its_sample(browser, study):
    browser.open(study)
    browser.click("#glance-map", 0.02, 0.02)
    first = browser.see(STATE)
    browser.click("#glance-map", 0.98, 0.9)
    second = browser.see(STATE)
    assert first["picked"] != second["picked"]
    assert first["ringed"] == second["ringed"] == 1
    is_quiet(browser)


def test_a_report_on_training_rows_has_no_accuracy(browser):
    content = replace(like_a_study(), leaderboard=[])
    learned = np.ones(150, dtype=bool)
    content = replace(content, explanation=replace(content.explanation, learned=learned))
    browser.open(render(content))
    is_quiet(browser)
    assert "no accuracy is shown" in browser.text("#verdict")
    assert browser.count("#believe") == 0
    assert browser.count("#glance-marks use[href='#g2']") == 150
    assert not browser.see("document.getElementById('card-learned').hidden")
    browser.click('#glance button[data-select="state=0"]')
    assert "right" not in browser.text("#choice-words")


def test_a_step_of_the_calibration_selects_its_samples(browser, study):
    found = like_a_study().explanation
    sure = found.probabilities.max(axis=1)
    browser.open(study)
    browser.click("#bins tr:nth-child(2) button")
    check_selected(browser, np.flatnonzero((sure >= 0.8) & (sure < 0.9)), "stated 80 to 90 %")


def test_a_box_around_symbols_selects_them(browser, study):
    browser.open(study)
    inside = browser.see(
        "[...document.querySelectorAll('#where-marks use')]"
        ".filter((own) => own.x.baseVal.value < 240).length"
    )
    # It may end outside of the picture.
    browser.drag("#where-map", (0.001, 0.001), (0.5, 1.1))
    assert browser.count(".drag") == 0
    found = browser.see(STATE)
    assert found["words"].startswith(f"{inside} of 150 samples selected: in the box")
    assert found["bright"] == found["rows"] == inside
    browser.click("#choice-clear")
    assert not browser.see(STATE)["shown"]


def test_a_click_picks_the_nearest_symbol_and_the_row_under_it(browser, study):
    browser.open(study)
    browser.click("#where-map", 0.9, 0.5)
    first = browser.see(STATE)
    browser.click("#trust-box", 0.5, 0.02)
    second = browser.see(STATE)
    assert first["picked"] != second["picked"]
    assert first["marked"] == second["marked"] == 1
    browser.click("#listed tbody tr:nth-child(3) button")
    assert browser.see(STATE)["picked"] == second["listed"][2]


def test_pictures_are_walked_with_the_keyboard(browser, study):
    browser.open(study)
    browser.see("document.getElementById('where-box').focus()")
    place = "document.querySelector('#where-marks .picked').x.baseVal.value"
    before = browser.see(place)
    browser.press("ArrowRight")
    assert browser.see(place) > before
    browser.press("ArrowLeft")
    browser.press("ArrowLeft")
    assert browser.see(place) < before + 1e-6
    browser.see("document.getElementById('trust-box').focus()")
    browser.press("Home")
    top = browser.see(STATE)["picked"]
    browser.press("ArrowDown")
    assert browser.see(STATE)["picked"] != top
    browser.press("ArrowUp")
    assert browser.see(STATE)["picked"] == top
    browser.press("End")
    last = (like_a_study().explanation.status != "agree").sum() - 1
    assert browser.see("document.querySelector('#trust-here rect').y.baseVal.value") == last
    browser.see("document.getElementById('glance-box').focus()")
    picked = browser.see(STATE)["picked"]
    browser.press("ArrowRight")
    assert browser.see(STATE)["picked"] != picked
    browser.press("ArrowUp")
    assert browser.see(STATE)["picked"] == picked


def test_every_control_is_reached_by_the_tab_key_in_the_order_of_the_page(browser, study):
    browser.open(study)
    wanted = browser.see(STOPS)
    reached = []
    for _ in wanted:
        browser.press("Tab")
        reached.append(browser.see("document.activeElement.dataset.stop"))
    assert reached == wanted
    # Where the focus is can be seen.
    assert browser.see("getComputedStyle(document.activeElement).outlineStyle") == "solid"


def test_screen_readers_have_a_name_for_everything(browser, study):
    browser.open(study)
    nodes = browser.call("Accessibility.getFullAXTree")["nodes"]
    named = {
        "button",
        "link",
        "textbox",
        "searchbox",
        "combobox",
        "radio",
        "img",
        "image",
        "region",
        "navigation",
    }
    roles = {}
    for node in nodes:
        role = node.get("role", {}).get("value")
        name = node.get("name", {}).get("value", "")
        roles.setdefault(role, []).append(name)
        if role in named and not node.get("ignored"):
            assert name.strip(), node
    groups = "[...document.querySelectorAll('[role=group]')].filter((own) => !own.ariaLabel).length"
    assert browser.see(groups) == 0
    assert [len(roles[kind]) for kind in ("main", "banner", "navigation")] == [1, 1, 1]
    levels = [
        next(own["value"]["value"] for own in node["properties"] if own["name"] == "level")
        for node in nodes
        if node.get("role", {}).get("value") == "heading"
    ]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(b - a <= 1 for a, b in pairwise(levels))
    assert len(roles["region"]) >= 8


@pytest.mark.parametrize("width", [360, 1220])
def test_tables_stay_tables_on_a_phone(browser, study, width):
    browser.open(study, width=width)
    nodes = browser.call("Accessibility.getFullAXTree")["nodes"]
    roles = [node["role"]["value"] for node in nodes if not node["ignored"]]
    assert roles.count("table") + roles.count("grid") >= 8
    assert roles.count("rowheader") >= 30
    assert roles.count("columnheader") >= 20


def test_colours_tell_the_class_or_the_error(browser, study):
    found = like_a_study().explanation
    browser.open(study)
    browser.click("input[value=error]")
    assert browser.count("#where-marks use.bad") == found.wrong.sum()
    assert browser.text("#where-legend") == "rightwrong"
    browser.click('#where-legend button[data-select="answer=wrong"]')
    check_selected(browser, np.flatnonzero(found.wrong), "wrong")
    browser.press("Escape")
    browser.click("input[value=class]")
    for code in range(3):
        assert browser.count(f"#where-marks use.c{code}") == (found.truth_codes == code).sum()
    browser.click("input[value=lead]")
    assert browser.count("#where-marks use.v0, #where-marks use.v1, #where-marks use.v2") == 150
    is_quiet(browser)


@pytest.mark.parametrize("button", ["leaderboard", "views", "predictions", "chosen"])
def test_tables_are_saved_as_files(browser, tmp_path, button):
    content = like_a_study(names=['mrna "a", b', "mirna\nc", "<b>"])
    browser.open(render(content))
    where = {"behavior": "allow", "downloadPath": str(tmp_path)}
    browser.call("Browser.setDownloadBehavior", **where)
    if button == "chosen":
        browser.click('.legend button[data-select="truth=1"]')
    browser.click(f'button[data-save="{button}"]')
    path = tmp_path / f"{button}.csv"
    until = time.monotonic() + 30
    while not path.exists() and time.monotonic() < until:
        time.sleep(0.05)
    table = read_csv(path)
    rows = {
        "leaderboard": 7,
        "views": 3,
        "predictions": 150,
        "chosen": int((content.explanation.truth_codes == 1).sum()),
    }
    assert len(table) == rows[button] + 1
    assert len({len(row) for row in table}) == 1
    if button == "leaderboard":
        assert table[1][:3] == ["trusted vote, 3 views", "0.953", "92 to 98"]
    elif button == "views":
        assert table[1][0] == 'mrna "a", b'
    else:
        kept = np.flatnonzero(content.explanation.truth_codes == 1)[0] if button == "chosen" else 0
        first = dict(zip(table[0], table[1], strict=True))
        assert first["id"] == f"P{kept:03d}"
        assert float(first['trust mrna "a", b']) == pytest.approx(
            content.explanation.trust[kept, 0], abs=1e-3
        )
        assert float(first['contribution mrna "a", b']) == pytest.approx(
            content.explanation.contributions[kept, 0], abs=1e-3
        )
        assert first["prediction"] == content.explanation.predictions[kept]
    is_quiet(browser)


def read_csv(path):
    import csv

    with path.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.reader(file))


def test_many_samples(browser):
    content = like_a_study(10_000, 5, 4)
    browser.open(render(content))
    found = content.explanation
    browser.click("#pick")
    browser.write("P9999")
    assert browser.text("#card-name") == "P9999"
    # A sample that is not among those drawn is shown all the same.
    assert browser.count("#where-marks use.picked") == 1
    browser.click('#verdict button[data-select="answer=wrong"]')
    wrong = int(found.wrong.sum())
    assert browser.text("#choice-words").startswith(f"{wrong} of 10000 samples selected")
    assert browser.see("document.getElementById('trust-map').viewBox.baseVal.height") == min(
        wrong, 400
    )
    is_quiet(browser)


def test_an_empty_selection(browser):
    browser.open(render(examples()["one-sample"]()))
    browser.click('.legend button[data-select="truth=2"]')
    assert browser.text("#choice-words").startswith("0 of 1 samples selected: class Her2")
    assert browser.text("#listed tbody") == "no sample stands out"
    browser.press("Escape")
    assert browser.see("document.getElementById('trust-map').viewBox.baseVal.height") == 1
    is_quiet(browser)


def test_a_long_table_shows_its_first_rows_until_asked(browser):
    content = like_a_study()
    board = [replace(content.leaderboard[1], name=f"model {k}") for k in range(40)]
    browser.open(render(replace(content, leaderboard=board)))
    rows = visible("#leaderboard tbody tr")
    assert browser.see(rows) == 12
    browser.click("#leaderboard + button")
    assert browser.see(rows) == 40


def test_names_are_never_code(browser):
    words = "<img src=x onerror=alert(1)></script><script>alert(2)</script>"
    found = explanation(12, names=words + "{:03d}")
    browser.open(render(report(found, words=words, classes=[words + c for c in "abc"])))
    browser.click("#next")
    assert browser.count("img") == 0
    assert browser.text("#card-name").startswith(words)
    is_quiet(browser)


def test_a_printed_page_is_light_and_has_no_buttons(browser, study):
    browser.open(study, dark=True, media="print")
    assert browser.see(visible("nav, .needs-script, #choice")) == 0
    assert browser.see("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"


def test_the_browser_is_found_where_it_is_installed():
    done = subprocess.run(
        [CHROMIUM, "--version"], capture_output=True, text=True, check=True, env={**os.environ}
    )
    assert "Chromium" in done.stdout
