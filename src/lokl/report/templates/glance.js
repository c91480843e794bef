// The picture of all samples: symbols in columns, in the order of the page's data.
if (n) {
  const map = find("glance-map"), box = find("glance-box"), layer = find("glance-marks");
  const drawn = [...columns.glance], marks = new Map(drawn.map((k, place) => [k, layer.children[place]]));
  const ring = map.appendChild(draw("circle", { r: 7, class: "here", id: "glance-here" }));
  watchers.push(() => {
    for (const [k, mark] of marks) mark.classList.toggle("faint", !isChosen(k));
    const mark = marks.get(picked);
    ring.classList.toggle("off", !mark);
    if (!mark) return;
    ring.setAttribute("cx", mark.getAttribute("x"));
    ring.setAttribute("cy", mark.getAttribute("y"));
  });
  box.addEventListener("click", (event) => {
    const frame = map.getBoundingClientRect();
    const x = event.clientX - frame.left, y = event.clientY - frame.top;
    let best = -1, least = Infinity;
    for (const [k, mark] of marks) {
      if (!isChosen(k)) continue;
      const far = Math.hypot((parseFloat(mark.getAttribute("x")) * frame.width) / 100 - x, mark.getAttribute("y") - y);
      if (far < least) { least = far; best = k; }
    }
    if (best >= 0) pick(best);
  });
  box.tabIndex = 0;
  box.setAttribute("role", "group");
  box.setAttribute("aria-label", "Samples by state; arrow keys move from sample to sample");
  box.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowRight: 1, ArrowUp: -1, ArrowLeft: -1 }[event.key];
    const among = drawn.filter(isChosen);
    if (!step || !among.length) return;
    event.preventDefault();
    pick(among[(among.indexOf(picked) + step + among.length) % among.length]);
  });
}
