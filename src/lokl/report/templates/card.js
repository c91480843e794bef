if (n) {
  const votes = find("votes"), body = votes.tBodies[0].rows;
  const field = find("pick"), status = find("pick-words"), options = find("all-ids");
  const place = (row, from, to, low, span, zero) => {
    const svg = row.querySelector(".way svg"), bar = svg.querySelector("rect"), line = svg.querySelector("line");
    bar.setAttribute("x", (100 * (Math.min(from, to) - low)) / span);
    bar.setAttribute("width", Math.max((100 * Math.abs(to - from)) / span, 0.6));
    if (line) { line.setAttribute("x1", zero); line.setAttribute("x2", zero); }
  };
  const prediction = (k) => {
    const predicted = outcome(columns.prediction[k]);
    if (!columns.probabilities) return predicted;
    const own = names.map((name, c) => [columns.probabilities[k * names.length + c], c]);
    const others = own.filter(([, c]) => c !== columns.prediction[k]).sort((a, b) => b[0] - a[0]).slice(0, 3);
    return `${predicted}, probability ${probability(predictedProbability(k))} (${others.map(([p, c]) => `${names[c]} ${probability(p)}`).join(", ")})`;
  };
  const runnerUp = (k) => names[columns.runnerUp[k]];
  const alone = (k, view) => {
    const at = k * m + view, predicted = outcome(columns.alone[at]);
    const probable = columns.aloneProbability ? probability(columns.aloneProbability[at]) : "";
    return predicted ? (probable ? `${predicted} ${probable}` : predicted) : "–";
  };
  const put = (row, cell, text) => {
    const node = row.querySelector("." + cell);
    if (node) node.textContent = text;
  };
  // A sentence about each view, as the library writes it.
  const sentence = (k, view) => {
    const name = data.views[view], at = k * m + view;
    if (!has(k, view)) return `${name} is missing.`;
    const added = columns.contributions[at] || 0, said = outcome(columns.alone[at]);
    let alone = said ? ` alone predicts ${said}` : "";
    if (!names.length) return `${name}${alone}${alone ? "; it" : ""} adds ${contribution(added)}.`;
    if (columns.aloneProbability && columns.aloneProbability[at] < 2 / 3) alone += " weakly";
    const both = [names[columns.prediction[k]], runnerUp(k)], nothing = Math.abs(added) < 0.005;
    const [favoured, other] = added > 0 ? both : [both[1], both[0]];
    let joint = alone ? " and " : " ";
    if (said && !nothing && said !== favoured) joint = said === other ? "; next to the other views, it still " : "; it still ";
    const without = decisive.has(at) ? ` Without it the prediction is ${outcome(withoutOf.get(at))}.` : "";
    return `${name}${alone}${joint}${nothing ? "adds next to nothing" : "adds evidence"} for ${favoured} over ${other}.${without}`;
  };
  const fillSimilar = (k) => {
    const list = find("card-similar");
    list.replaceChildren();
    const support = data.support, truth = support ? read(support.truth) : columns.truth;
    for (let j = 0; j < 3; j++) {
      const other = columns.similar[3 * k + j];
      if (!known(other)) continue;
      const name = support ? support.ids[other] : ids[other];
      const words = [outcome(truth[other]), columns.similarity ? `similarity ${probability(columns.similarity[3 * k + j])}` : ""].filter(Boolean).join(", ");
      const outer = make("span", undefined, "similar");
      outer.append(numberOf.has(name) ? picker(name) : name, words ? ` (${words})` : "");
      list.append(outer, " ");
    }
    if (!list.children.length) list.textContent = "none";
  };
  const picker = (name) => {
    const button = make("button", name, "link");
    button.type = "button";
    button.addEventListener("click", () => pick(numberOf.get(name)));
    return button;
  };
  const fill = (k) => {
    find("card-name").textContent = ids[k];
    find("card-prediction").textContent = prediction(k);
    if (find("card-truth")) find("card-truth").textContent = outcome(columns.truth[k]) || "unknown";
    find("card-wrong").hidden = !isWrong(k);
    find("card-differ").hidden = !(differ(k) >= data.disagree);
    find("card-differ").lastElementChild.textContent = probability(differ(k));
    find("card-left").textContent = names.length ? runnerUp(k) : "less";
    find("card-right").textContent = names.length ? names[columns.prediction[k]] : "more";
    const contributions = data.views.map((_, view) => (has(k, view) ? columns.contributions[k * m + view] : 0));
    const stops = [columns.baseValue[k]];
    contributions.forEach((own) => stops.push(stops[stops.length - 1] + own));
    const ends = names.length ? [...stops, 0] : stops;
    const low = Math.min(...ends), span = Math.max(...ends) - low || 1;
    const zero = (-100 * low) / span, end = stops[m];
    const word = names.length ? contribution : outcome;
    place(body[0], names.length ? 0 : stops[0], stops[0], low, span, zero);
    put(body[0], "adds", word(stops[0]));
    data.views.forEach((_, view) => {
      const row = body[view + 1], here = has(k, view), at = k * m + view;
      row.className = here ? "" : "missing";
      put(row, "says", here ? alone(k, view) : "missing");
      put(row, "share", here && columns.trust ? probability(columns.trust[at]) : "");
      put(row, "evidence", here && columns.evidence && known(columns.evidence[at]) ? signed(columns.evidence[at], 1) : "");
      put(row, "adds", here ? contribution(contributions[view]) : "");
      place(row, stops[view], stops[view + 1], low, span, zero);
    });
    place(body[m + 1], names.length ? 0 : end, end, low, span, zero);
    put(body[m + 1], "says", outcome(columns.prediction[k]));
    put(body[m + 1], "adds", word(end));
    if (find("card-sentences")) find("card-sentences").replaceChildren(...data.views.map((_, view) => make("li", sentence(k, view))));
    find("card-state").hidden = !columns.status || m < 2;
    find("card-state").textContent = columns.status ? data.stateTexts[columns.status[k]] : "";
    if (find("card-set")) {
      const inside = names.filter((_, c) => columns.sets[k * names.length + c] === 1);
      find("card-set").textContent = names.length ? inside.join(", ") || "no class" : `${outcome(columns.sets[2 * k])} to ${outcome(columns.sets[2 * k + 1])}`;
    }
    if (find("card-columns")) {
      const each = columns.leading.length / n, view = (column) => (m > 1 ? data.views[data.columnViews[column]] + " " : "");
      find("card-columns").textContent = Array.from({ length: each }, (_, j) => [columns.leading[each * k + j], columns.leadingValues[each * k + j]])
        .filter(([column]) => known(column)).map(([column, own]) => `${view(column)}${data.columnNames[column]} ${contribution(own)}`).join(", ");
    }
    find("card-learned").hidden = !learned.has(k);
    if (names.length) {
      find("card-first").textContent = names[columns.prediction[k]];
      find("card-second").textContent = runnerUp(k);
    }
    const unfamiliar = data.views.map((_, view) => [view, familiarityOf.get(k * m + view)]).filter(([, seen]) => seen !== undefined);
    find("card-unfamiliar").hidden = !unfamiliar.length;
    find("card-unfamiliar").lastElementChild.textContent = unfamiliar.map(([view, seen]) => `${data.views[view]} ${probability(seen)}`).join(", ");
    fillSimilar(k);
  };

  // The list next to the card shows the selected samples that most deserve a look.
  const listed = find("listed"), withTruth = listed.tHead.rows[0].cells.length === 4;
  const mostOff = names.length ? 1 : Math.max(...Array.from({ length: n }, (_, k) => offBy(k)).filter(known), 0) || 1;
  const worth = Array.from({ length: n }, (_, k) => {
    const wrong = names.length ? (isWrong(k) ? (columns.probabilities ? predictedProbability(k) : 1) : 0) : (offBy(k) || 0) / mostOff;
    return (differ(k) || 0) + wrong;
  });
  const ranked = ids.map((_, k) => k).sort((a, b) => worth[b] - worth[a]);
  const why = (k) => {
    const found = [];
    if (isWrong(k)) found.push(columns.probabilities ? `wrong at ${probability(predictedProbability(k))}` : "wrong");
    if (!names.length && isJudged(k)) found.push(`off by ${fixed(offBy(k), data.valuePlaces)}`);
    if (differ(k) > 0) found.push(`views differ ${probability(differ(k))}`);
    return found.join(", ");
  };
  const list = () => {
    const some = [];
    for (const k of ranked) if (worth[k] > 0 && isChosen(k) && some.push(k) === 8) break;
    listed.tBodies[0].replaceChildren(...some.map((k) => {
      const row = make("tr"), head = make("th");
      head.scope = "row";
      head.append(picker(ids[k]));
      row.append(head, make("td", outcome(columns.prediction[k])));
      if (withTruth) row.append(make("td", outcome(columns.truth[k]) || "–"));
      row.append(make("td", why(k)));
      return row;
    }));
    if (!some.length) {
      const cell = make("td", "no sample stands out");
      cell.colSpan = 4;
      listed.tBodies[0].insertRow().append(cell);
    }
    find("listed-words").textContent = chosen === null ? "" : `, of ${chosen.size} selected`;
  };
  let shown;
  watchers.push(() => {
    if (shown !== chosen) { shown = chosen; list(); }
    for (const row of listed.tBodies[0].rows) {
      if (row.cells[0].textContent === ids[picked]) row.setAttribute("aria-current", "true");
      else row.removeAttribute("aria-current");
    }
    if (picked < 0) return;
    field.value = ids[picked];
    fill(picked);
    status.textContent = `${ids[picked]}: ${outcome(columns.prediction[picked])}${isWrong(picked) ? ", wrong" : ""}`;
  });

  const offered = (text) => {
    const wanted = text.trim().toLowerCase(), found = [];
    for (let k = 0; k < n && found.length < 20; k++) if (isChosen(k) && ids[k].toLowerCase().includes(wanted)) found.push(k);
    return found;
  };
  const offer = (found) => options.replaceChildren(...found.map((k) => { const o = make("option"); o.value = ids[k]; return o; }));
  // A click selects the id, so that typing replaces it.
  field.addEventListener("click", () => { if (field.value === ids[picked]) field.select(); });
  field.addEventListener("focus", () => field.select());
  field.addEventListener("input", () => {
    const exact = numberOf.get(field.value);
    if (exact !== undefined) pick(exact);
    else offer(offered(field.value));
  });
  field.addEventListener("change", () => {
    const exact = numberOf.get(field.value.trim()), found = offered(field.value);
    if (exact !== undefined) pick(exact);
    else if (found.length === 1) pick(found[0]);
    else status.textContent = `No sample ${field.value}.` + (found.length ? ` There are ${found.slice(0, 3).map((k) => ids[k]).join(", ")}.` : "");
  });
  const step = (by) => {
    const among = ids.map((_, k) => k).filter(isChosen);
    if (among.length) pick(among[(among.indexOf(picked) + by + among.length) % among.length]);
  };
  find("before").addEventListener("click", () => step(-1));
  find("next").addEventListener("click", () => step(1));
  offer(offered(""));
  list();
  shown = chosen;
  pick(ranked[0]);
}
