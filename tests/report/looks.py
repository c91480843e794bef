"""Questions to a page in a browser, in its own language."""

# Beside drawings, only what scrolls by itself may be wider than the screen.
TOO_WIDE = """
[...document.querySelectorAll("body *")]
  .filter((node) => !node.closest(".scroll, svg, datalist, .hidden, .skip")
    && node.getBoundingClientRect().right > innerWidth + 1)
  .map((node) => node.tagName + "#" + node.id + "." + node.className)
  .slice(0, 5)
"""

# Tables must not stick out of the frame of their part either.
STICKS_OUT = """
[...document.querySelectorAll("section table")]
  .filter((own) => !own.closest(".scroll"))
  .map((own) => [own.id, own.closest("section").getBoundingClientRect().right
    - own.getBoundingClientRect().right])
  .filter(([, room]) => room < 4)
"""

# Of every axis above a column: its labels that overlap, and the dots of the column that do not lie
# where the labels say, in pixels.
AXES = """
(() => {
  const middle = (box) => (box.left + box.right) / 2;
  const number = (text) => Number(text.replace("−", "-"));
  const overlaps = [], off = [];
  let dots = 0;
  for (const head of document.querySelectorAll("th.strip")) {
    const labels = [...head.querySelectorAll("b")]
      .map((own) => [number(own.textContent), own.getBoundingClientRect()]);
    if (!labels.length || !head.getClientRects().length) continue;
    labels.forEach(([value, box], k) => {
      if (k && box.left < labels[k - 1][1].right + 2) overlaps.push(value);
    });
    const [first, last] = [labels[0], labels[labels.length - 1]];
    const per = (middle(last[1]) - middle(first[1])) / (last[0] - first[0]);
    for (const row of head.closest("table").tBodies[0].rows) {
      const cell = row.cells[head.cellIndex], dot = cell.querySelector(".at");
      if (!dot || !cell.getClientRects().length) continue;
      dots++;
      const value = head.dataset.factor * Number(row.cells[head.cellIndex - 1].dataset.value);
      const place = middle(dot.getBoundingClientRect()) - middle(first[1]);
      const wrong = place - per * (value - first[0]);
      if (Math.abs(wrong) > 1) off.push([row.cells[0].textContent.trim(), value, wrong]);
    }
  }
  return [dots, overlaps, off];
})()
"""

# The lowest contrast of all words, and who has it.
CONTRAST = """
(() => {
  const channel = (v) => (v <= 10.31 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4);
  const light = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const numbers = (colour) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data];
  };
  let worst = [99, ""];
  for (const node of document.querySelectorAll("body *")) {
    const own = [...node.childNodes];
    const words = own.some((part) => part.nodeType === 3 && part.textContent.trim());
    if (!words || !node.getClientRects().length || node.closest(".hidden, script")) continue;
    const style = getComputedStyle(node);
    const ink = numbers(node.namespaceURI.endsWith("svg") ? style.fill : style.color);
    let paper = [255, 255, 255];
    for (let up = node; up; up = up.parentElement) {
      const found = numbers(getComputedStyle(up).backgroundColor);
      if (found[3] > 0) { paper = found; break; }
    }
    const [a, b] = [light(ink) + 0.05, light(paper) + 0.05];
    const contrast = Math.max(a, b) / Math.min(a, b);
    const who = node.tagName + "." + node.className + ": " + node.textContent;
    if (contrast < worst[0]) worst = [contrast, who];
  }
  return worst;
})()
"""

# Everything on the card of a sample: words, badges, and rows with the places of their bars.
CARD = """
(() => {
  const find = (name) => document.getElementById("card-" + name);
  const plain = (node) => (node ? node.textContent.replace(/\\s+/g, " ").trim() : "");
  const names = ["name", "prediction", "truth", "left", "right", "similar", "unfamiliar", "first",
    "second", "state", "learned", "sentences", "columns", "set"];
  const words = names.map((name) => plain(find(name)));
  const badges = ["wrong", "differ", "state", "learned"]
    .map((name) => !find(name).hidden && plain(find(name)));
  const rows = [...document.querySelectorAll("#votes tbody tr")].map((row) => {
    const bar = row.querySelector("rect"), line = row.querySelector("line");
    const zero = line ? line.getAttribute("x1") : 0;
    const places = [bar.getAttribute("x"), bar.getAttribute("width"), zero];
    return [row.className, [...row.cells].slice(0, -1).map(plain), places.map(Number)];
  });
  return [words, badges, rows];
})()
"""

# What is selected, as every part of the page shows it.
STATE = """
({
  words: document.getElementById("choice-words").textContent,
  shown: !document.getElementById("choice").hidden,
  bright: document.querySelectorAll("#where-marks use:not(.faint)").length,
  rows: document.getElementById("trust-map").viewBox.baseVal.height,
  listed: [...document.querySelectorAll("#listed tbody th")].map((own) => own.textContent),
  picked: document.getElementById("card-name").textContent,
  marked: document.querySelectorAll("#where-marks use.picked").length,
  glance: document.querySelectorAll("#glance-marks use:not(.faint)").length,
  ringed: document.querySelectorAll("#glance-here:not(.off)").length,
  here: document.querySelectorAll("#trust-here rect").length,
  field: document.getElementById("pick").value,
  trust: document.getElementById("trust-words").textContent,
})
"""

# Numbers every stop of the tab key in the order of the page.
STOPS = """
[...document.querySelectorAll("a, button, input, summary, [tabindex='0']")]
  .filter((own) => own.getClientRects().length && !own.closest("[hidden]"))
  .filter((own) => own.tagName === "SUMMARY" || !own.closest("details:not([open])"))
  .filter((own) => own.type !== "radio" || own.checked)
  .map((own, k) => (own.dataset.stop = String(k)))
"""


def visible(selector):
    """Return the question how many elements are to be seen."""
    return (
        f"[...document.querySelectorAll({selector!r})]"
        ".filter((own) => own.getClientRects().length).length"
    )
