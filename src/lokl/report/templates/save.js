// Tables as files, made on this page.
const quoted = (value) => `"${String(value ?? "").replaceAll('"', '""')}"`;
const save = (name, rows) => {
  const text = "\ufeff" + rows.map((row) => row.map(quoted).join(",")).join("\r\n") + "\r\n";
  const link = make("a");
  link.href = URL.createObjectURL(new Blob([text], { type: "text/csv" }));
  link.download = name + ".csv";
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
};
const tableRows = (id) => [...find(id).rows].map((row) => [...row.cells].flatMap((cell) => {
  const limits = cell.querySelector(".limits");
  const value = cell.dataset.value ?? (cell.querySelector(".sort") || cell).textContent.trim();
  const isHead = cell.tagName === "TH" && cell.scope === "col";
  if (cell.classList.contains("strip")) return [];
  if (!cell.classList.contains("value") && !cell.classList.contains("gain")) return [value];
  return isHead ? [value, value + " interval"] : [value, limits ? limits.textContent : ""];
}));
const exact = (value) => (known(value) ? Number(value.toPrecision(6)) : "");
const predictions = (numbers) => [
  ["id", "truth", "prediction", ...(columns.probabilities ? names.map((name) => `probability ${name}`) : []), "disagreement", "status",
    ...data.views.flatMap((view) => [`${data.weightName} ${view}`, `contribution ${view}`, `alone ${view}`])],
  ...numbers.map((k) => [
    ids[k],
    names.length ? outcome(columns.truth[k]) : exact(columns.truth[k]),
    names.length ? outcome(columns.prediction[k]) : exact(columns.prediction[k]),
    ...(columns.probabilities ? names.map((_, c) => exact(columns.probabilities[k * names.length + c])) : []),
    exact(differ(k)),
    columns.status ? data.states[columns.status[k]] : "",
    ...data.views.flatMap((_, view) => {
      const at = k * m + view;
      if (!has(k, view)) return ["", "", ""];
      return [columns.trust ? exact(columns.trust[at]) : "", exact(columns.contributions[at]), names.length ? outcome(columns.alone[at]) : exact(columns.alone[at])];
    }),
  ]),
];
const all = ids.map((_, k) => k);
const files = {
  leaderboard: () => tableRows("leaderboard"),
  views: () => tableRows("worth"),
  predictions: () => predictions(all),
  chosen: () => predictions(all.filter(isChosen)),
};
for (const button of document.querySelectorAll("button[data-save]")) {
  button.addEventListener("click", () => save(button.dataset.save, files[button.dataset.save]()));
}
