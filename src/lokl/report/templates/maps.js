if (n && find("trust-map")) {
  // Rows of the selected samples, in the order of the whole map.
  const map = find("trust-map"), box = find("trust-box"), cells = find("trust-cells");
  const before = [cells.innerHTML, find("trust-groups").innerHTML, find("trust-words").textContent, map.getAttribute("viewBox")];
  const drawn = [...columns.rows];
  let rows = drawn;
  const shade = (k, view) => {
    if (!has(k, view)) return ["absent", 1];
    const trust = columns.trust[k * m + view];
    if (!known(trust)) return ["unknown", 1];
    return [`v${view % data.colours}`, (Math.min(Math.floor(trust * data.levels), data.levels - 1) + 0.5) / data.levels];
  };
  const spread = (list) => {
    if (list.length <= data.mostRows) return list;
    return Array.from({ length: data.mostRows }, (_, k) => list[Math.floor((k * (list.length - 1)) / (data.mostRows - 1))]);
  };
  const groups = () => {
    const found = [];
    rows.forEach((k, row) => {
      const code = known(columns.truth[k]) ? columns.truth[k] : -1, last = found[found.length - 1];
      if (last && last.code === code) last.count++;
      else found.push({ code, start: row, count: 1 });
    });
    find("trust-groups").replaceChildren(...found.map(({ code, start, count }) => {
      const outer = make("span", undefined, "group"), name = code < 0 ? "unknown" : names[code];
      outer.style.top = (100 * start) / rows.length + "%";
      outer.style.height = (100 * count) / rows.length + "%";
      const inner = outer.appendChild(make("span", short(name, 14)));
      inner.title = name;
      inner.classList.toggle("hidden", (count / rows.length) * box.clientHeight < 11);
      Object.assign(inner.dataset, { select: `truth=${code}`, words: `class ${name}` });
      selectable(inner);
      return outer;
    }));
  };
  const redraw = () => {
    const paths = {};
    rows.forEach((k, row) => {
      for (let view = 0; view < m; view++) {
        const kind = shade(k, view);
        paths[kind] = (paths[kind] || "") + `M${100 * view + 1},${row}h98v1h-98z`;
      }
    });
    map.setAttribute("viewBox", `0 0 ${100 * m} ${Math.max(rows.length, 1)}`);
    const high = Math.max(1, Math.round((6 * rows.length) / box.clientHeight));
    const hatch = map.querySelector("pattern");
    hatch.setAttribute("height", high);
    hatch.firstElementChild.setAttribute("d", `M0,${high}L5,0`);
    cells.replaceChildren(...Object.entries(paths).map(([kind, d]) => {
      const [css, opacity] = kind.split(",");
      return draw("path", { class: css, "fill-opacity": opacity, d });
    }));
    if (names.length && columns.truth.some(known)) groups();
    const all = [...chosen].length;
    find("trust-words").textContent = rows.length < all ? `${rows.length} of the ${all} selected samples are drawn.` : `Only the ${all} selected samples are drawn.`;
  };
  let shown = null;
  watchers.push(() => {
    if (chosen !== shown) {
      shown = chosen;
      if (chosen === null) {
        rows = drawn;
        [cells.innerHTML, find("trust-groups").innerHTML, find("trust-words").textContent] = before;
        map.setAttribute("viewBox", before[3]);
      } else {
        rows = spread([...columns.order].filter(isChosen));
        redraw();
      }
    }
    const row = rows.indexOf(picked);
    find("trust-here").replaceChildren(...(row < 0 ? [] : [draw("rect", { x: 0, y: row, width: 100 * m, height: 1, class: "here" })]));
  });
  box.addEventListener("click", (event) => {
    const frame = map.getBoundingClientRect();
    const row = Math.floor(((event.clientY - frame.top) * rows.length) / frame.height);
    if (rows[row] !== undefined) pick(rows[row]);
  });
  box.tabIndex = 0;
  box.setAttribute("role", "group");
  box.setAttribute("aria-label", "Samples by trust; up and down move from row to row");
  box.addEventListener("keydown", (event) => {
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: 10, PageUp: -10, Home: -rows.length, End: rows.length };
    if (!(event.key in steps) || !rows.length) return;
    event.preventDefault();
    pick(rows[Math.min(Math.max(rows.indexOf(picked) + steps[event.key], 0), rows.length - 1)]);
  });
}

if (n) {
  const map = find("where-map"), box = find("where-box"), layer = find("where-marks");
  const marks = new Map([...columns.drawn].map((k, place) => [k, layer.children[place]]));
  const legend = find("where-legend"), leadLegend = [...legend.childNodes];
  const anyTruth = columns.truth.some(known);
  const shape = (k) => {
    const code = anyTruth ? columns.truth[k] : columns.prediction[k];
    return names.length ? (known(code) ? code % (data.symbols - 1) : data.symbols - 1) : 0;
  };
  const largest = anyTruth ? Math.max(...Array.from({ length: n }, (_, k) => offBy(k)).filter(known)) || 1 : 1;
  const values = anyTruth ? columns.truth : columns.prediction, sorted = [...values].filter(known).sort((a, b) => a - b);
  const [low, high] = [sorted[0], sorted[sorted.length - 1]];
  const step = (share) => "c" + Math.min(Math.floor(8 * share), 7);
  const colours = {
    lead: (k) => colourOf(columns.lead[k]),
    class: (k) => (!known(values[k]) ? "fine" : names.length ? "c" + values[k] : step((values[k] - low) / (high - low || 1))),
    error: (k) => (!isJudged(k) ? "fine" : names.length ? (isWrong(k) ? "bad" : "fine") : step(offBy(k) / largest)),
  };
  const entry = (css, words, query, title) => {
    const outer = make("span", undefined, "entry"), swatch = make("span", undefined, "swatch " + css);
    outer.append(swatch, words);
    if (query) { outer.dataset.select = query; outer.dataset.words = title; }
    return outer;
  };
  const range = (what, from, to) => [make("span", what, "soft"), entry("c0", outcome0(from)), entry("c3", "…"), entry("c7", outcome0(to))];
  const outcome0 = (value) => fixed(value, data.valuePlaces);
  const legends = {
    class: () => (names.length ? [] : range(anyTruth ? "truth" : "prediction", low, high)),
    error: () => (names.length
      ? [entry("fine", "right", "answer=right", "right"), entry("bad", "wrong", "answer=wrong", "wrong")]
      : range("off by", 0, largest)),
  };
  let how = document.querySelector("input[name=colour]:checked").value;
  let extra = null;
  const dress = (mark, k) => {
    mark.setAttribute("class", colours[how](k) + (isChosen(k) ? "" : " faint") + (k === picked ? " picked" : ""));
  };
  const paint = () => {
    for (const [k, mark] of marks) dress(mark, k);
    if (extra) extra.remove();
    extra = null;
    if (picked < 0) return;
    if (!marks.has(picked)) {
      extra = draw("use", { href: "#s" + shape(picked), x: columns.x[picked], y: columns.y[picked] });
      dress(extra, picked);
    }
    layer.append(extra || marks.get(picked));
  };
  watchers.push(paint);
  for (const radio of document.querySelectorAll("input[name=colour]")) {
    radio.addEventListener("change", () => {
      how = radio.value;
      if (how === "lead") legend.replaceChildren(...leadLegend);
      else {
        legend.replaceChildren(...legends[how]());
        legend.querySelectorAll("[data-select]").forEach(selectable);
      }
      // Shapes in the legend take the colours of their classes.
      document.querySelectorAll(".legend .key").forEach((key, code) => key.setAttribute("class", how === "class" ? `key c${code}` : "key"));
      paint();
    });
  }

  const at = (event) => {
    const frame = map.getBoundingClientRect(), size = map.viewBox.baseVal;
    return [((event.clientX - frame.left) * size.width) / frame.width, ((event.clientY - frame.top) * size.height) / frame.height];
  };
  const nearest = (x, y, numbers, distance = (dx, dy) => dx * dx + dy * dy) => {
    let best = -1, least = Infinity;
    for (const k of numbers) {
      const far = distance(columns.x[k] - x, columns.y[k] - y);
      if (far < least) { least = far; best = k; }
    }
    return best;
  };
  const candidates = () => [...marks.keys()].filter(isChosen);
  let from = null, drag = null;
  map.addEventListener("pointerdown", (event) => { if (event.button === 0) from = at(event); });
  // A box may end outside of the picture, so that the whole window listens.
  window.addEventListener("pointermove", (event) => {
    if (!from || event.pointerType !== "mouse") return;
    const to = at(event);
    if (!drag && Math.hypot(to[0] - from[0], to[1] - from[1]) < 6) return;
    if (!drag) drag = map.appendChild(draw("rect", { class: "drag" }));
    [["x", Math.min(from[0], to[0])], ["y", Math.min(from[1], to[1])], ["width", Math.abs(to[0] - from[0])], ["height", Math.abs(to[1] - from[1])]]
      .forEach(([name, value]) => drag.setAttribute(name, value));
  });
  const stop = () => {
    const began = from, boxed = drag !== null;
    if (drag) drag.remove();
    from = drag = null;
    return [began, boxed];
  };
  window.addEventListener("pointerup", (event) => {
    const [began, boxed] = stop();
    if (!began) return;
    const [x0, y0] = began, [x1, y1] = at(event);
    if (!boxed) {
      const k = nearest(x1, y1, candidates());
      if (k >= 0) pick(k);
      return;
    }
    const inside = (v, a, b) => v >= Math.min(a, b) && v <= Math.max(a, b);
    choose(ids.map((_, k) => k).filter((k) => inside(columns.x[k], x0, x1) && inside(columns.y[k], y0, y1)), "in the box");
  });
  window.addEventListener("pointercancel", stop);
  box.tabIndex = 0;
  box.setAttribute("role", "group");
  box.setAttribute("aria-label", "Samples by similarity; arrow keys move to the next sample");
  box.addEventListener("keydown", (event) => {
    const way = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
    if (!way) return;
    event.preventDefault();
    const others = candidates().filter((k) => k !== picked);
    // The next one that way; a step aside counts double.
    const k = nearest(columns.x[picked], columns.y[picked], others, (dx, dy) => {
      const ahead = dx * way[0] + dy * way[1], aside = Math.abs(dx * way[1]) + Math.abs(dy * way[0]);
      return ahead > 0 ? ahead + 2 * aside : Infinity;
    });
    if (k >= 0) pick(k);
  });
}
