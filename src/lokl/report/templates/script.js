"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const find = (id) => document.getElementById(id);
  const make = (tag, text, css) => {
    const node = document.createElement(tag);
    if (text !== undefined) node.textContent = text;
    if (css) node.className = css;
    return node;
  };
  document.documentElement.classList.add("js");

  // Tables: a click on a heading sorts, another one turns the order round.
  for (const table of document.querySelectorAll("table.sortable")) {
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, column) => {
      if (head.querySelector(".hidden")) return;
      const button = make("button", head.textContent);
      button.type = "button";
      head.replaceChildren(button);
      button.addEventListener("click", () => {
        const down = head.getAttribute("aria-sort") !== "descending";
        heads.forEach((other) => other.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        const value = (row) => {
          let cell = row.cells[0];
          for (let place = 0, k = 0; k < row.cells.length; place += row.cells[k].colSpan, k++) {
            if (place <= column) cell = row.cells[k];
          }
          const known = cell.dataset.value;
          return known === undefined ? cell.textContent.trim() : Number(known);
        };
        const rows = [...table.tBodies[0].rows].map((row) => [value(row), row]);
        const order = (a, b) =>
          typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b));
        rows.sort((a, b) => (down ? -1 : 1) * order(a[0], b[0]));
        table.tBodies[0].append(...rows.map((pair) => pair[1]));
      });
    });
  }

  // Hundredths keep the page small.
  const part = (v) => (Array.isArray(v) ? v.map(part) : v === null ? null : v / 100);
  for (const name of ["probabilities", "trust", "parts", "start", "sure", "disagreement"]) {
    if (data[name]) data[name] = part(data[name]);
  }
  const ids = data.ids;
  const names = data.classes;
  const number = new Map(ids.map((id, k) => [id, k]));
  const lacks = new Set((data.absent || []).map((pair) => pair.join()));
  const isWrong = (k) => names.length > 0 && data.truth[k] >= 0 && data.truth[k] !== data.predicted[k];
  const outcome = (value) => (names.length ? names[value] : Number(value).toPrecision(3));

  const card = find("card");
  const marks = [...document.querySelectorAll("#where-map use")];
  const markOf = new Map((data.points || []).map((k, place) => [k, marks[place]]));
  let picked = -1;

  const bars = (k) => {
    const grid = make("div", undefined, "bars");
    const parts = [data.start[k], ...data.parts[k]];
    const stops = [0];
    parts.forEach((part) => stops.push(stops[stops.length - 1] + part));
    const low = Math.min(...stops), span = Math.max(...stops) - low || 1;
    parts.forEach((part, place) => {
      const view = place - 1;
      const label = place ? data.views[view] : "before any view";
      grid.append(make("span", label));
      const bar = make("div", undefined, "bar");
      const piece = make("i");
      const from = Math.min(stops[place], stops[place + 1]);
      piece.style.left = (100 * (from - low)) / span + "%";
      piece.style.width = (100 * Math.abs(part)) / span + "%";
      piece.style.background = place ? `var(--v${view % 6})` : "var(--soft)";
      bar.append(piece);
      bar.setAttribute("role", "img");
      bar.setAttribute("aria-label", `${label}: ${part}`);
      grid.append(bar);
    });
    return grid;
  };

  const tell = (k) => {
    const what = make("p");
    let line = `${ids[k]}: ${outcome(data.predicted[k])}`;
    if (data.probabilities) {
      const all = data.probabilities[k].map((p, c) => [p, c]).sort((a, b) => b[0] - a[0]);
      line += `, probability ${all[0][0].toFixed(2)}`;
      line += ` (${all.slice(1, 4).map(([p, c]) => `${names[c]} ${p.toFixed(2)}`).join(", ")})`;
    }
    what.append(make("b", line));
    const truth = data.truth[k];
    if (truth !== null && !(names.length && truth < 0)) what.append(` truth: ${outcome(truth)}`);
    if (isWrong(k)) what.append(" ", make("span", "wrong", "badge"));
    if (data.disagreement[k] >= 0.5) what.append(" ", make("span", `views disagree (${data.disagreement[k]})`, "badge"));
    const table = make("table");
    const head = table.createTHead().insertRow();
    for (const title of ["view", "says alone", "trust", "pulls"]) head.append(make("th", title));
    const body = table.createTBody();
    data.views.forEach((view, v) => {
      const row = body.insertRow();
      const name = make("th");
      name.scope = "row";
      name.append(make("span", undefined, `swatch v${v % 6}`), view);
      row.append(name);
      if (lacks.has(`${k},${v}`)) {
        const cell = make("td", "missing");
        cell.colSpan = 3;
        row.append(cell);
        return;
      }
      const says = data.says[k][v], sure = data.sure[k][v];
      const word = says === null || (names.length && says < 0) ? "" : outcome(says) + (sure === null ? "" : ` ${sure}`);
      row.append(make("td", word), make("td", String(data.trust[k][v])), make("td", String(data.parts[k][v])));
    });
    const near = make("p", "most like: ");
    data.near[k].forEach((other, place) => {
      const button = make("button", `${ids[other]} (${outcome(data.truth[other] >= 0 || !names.length ? data.truth[other] : data.predicted[other])})`);
      button.type = "button";
      button.addEventListener("click", () => pick(other));
      near.append(place ? " " : "", button);
    });
    card.replaceChildren(what, bars(k), table);
    if (data.near[k].length) card.append(near);
  };

  const pick = (k) => {
    const before = markOf.get(picked);
    if (before) before.classList.remove("picked");
    picked = k;
    const mark = markOf.get(k);
    if (mark) {
      mark.classList.add("picked");
      mark.parentNode.append(mark);
    }
    find("pick").value = ids[k];
    tell(k);
  };

  if (card) {
    find("all-ids").append(...ids.slice(0, 2000).map((id) => { const o = make("option"); o.value = id; return o; }));
    find("pick").addEventListener("change", (event) => {
      const k = number.get(event.target.value.trim());
      if (k === undefined) card.replaceChildren(make("p", `no sample is called ${event.target.value}`));
      else pick(k);
    });
    const next = (test) => {
      for (let step = 1; step <= ids.length; step++) {
        const k = (picked + step + ids.length) % ids.length;
        if (test(k)) return pick(k);
      }
      card.replaceChildren(make("p", "there is none"));
    };
    find("next-disagreement").addEventListener("click", () => next((k) => data.disagreement[k] >= 0.5));
    find("next-wrong").addEventListener("click", () => next(isWrong));
    marks.forEach((mark, place) => mark.addEventListener("click", () => pick(data.points[place])));
    const map = find("trust-map");
    map.addEventListener("click", (event) => {
      const box = map.getBoundingClientRect();
      const y = ((event.clientY - box.top) * map.viewBox.baseVal.height) / box.height;
      const row = Math.floor((y - Number(map.dataset.top)) / Number(map.dataset.tall));
      if (row >= 0 && row < data.rows.length) pick(data.rows[row]);
    });
    const kinds = {
      lead: [(k) => data.lead[k] % 6, data.views],
      wrong: [(k) => (isWrong(k) ? 1 : 0), ["right", "wrong"]],
      class: [(k) => Math.max(data.truth[k], 0) % 6, names.slice(0, 6)],
    };
    const paint = (how) => {
      const [colour, words] = kinds[how];
      marks.forEach((mark, place) => {
        for (let v = 0; v < 6; v++) mark.classList.remove("v" + v);
        mark.classList.add("v" + colour(data.points[place]));
      });
      find("where-legend").replaceChildren(
        ...words.map((word, v) => { const s = make("span"); s.append(make("span", undefined, `swatch v${v % 6}`), word); return s; }),
      );
    };
    for (const radio of document.querySelectorAll("input[name=colour]")) {
      if (!names.length && radio.value !== "lead") radio.parentNode.hidden = true;
      radio.addEventListener("change", () => paint(radio.value));
    }
    next((k) => data.disagreement[k] >= 0.5);
    if (picked < 0 && ids.length) pick(0);
  }

  // Tables as files, made on this page.
  const csv = (rows) => rows.map((row) => row.map((v) => `"${String(v ?? "").replaceAll('"', '""')}"`).join(",")).join("\r\n");
  const save = (name, rows) => {
    const link = make("a");
    link.href = URL.createObjectURL(new Blob([csv(rows)], { type: "text/csv" }));
    link.download = name + ".csv";
    link.click();
    URL.revokeObjectURL(link.href);
  };
  const tables = {
    leaderboard: () => [...find("leaderboard").rows].map((row) => [...row.cells].map((c) => c.dataset.value ?? c.textContent.trim())),
    cases: () => [
      ["id", "truth", "predicted", "disagreement", ...data.views.map((v) => "trust " + v), ...data.views.map((v) => "part " + v)],
      ...ids.map((id, k) => [id, outcome(data.truth[k]), outcome(data.predicted[k]), data.disagreement[k], ...data.trust[k], ...data.parts[k]]),
    ],
  };
  for (const button of document.querySelectorAll("button[data-save]")) {
    const kind = button.dataset.save;
    if ((kind === "leaderboard" && !find("leaderboard")) || (kind === "cases" && !ids.length)) button.hidden = true;
    button.addEventListener("click", () => save(kind, tables[kind]()));
  }
})();
