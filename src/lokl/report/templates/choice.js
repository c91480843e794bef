// What is selected anywhere is selected everywhere: one set of samples, and one sample on the card.
const watchers = [];
let chosen = null; // a Set of numbers, null for all
let picked = -1;
let asked = ""; // in the language of the tests below, where words were clicked
const isChosen = (k) => chosen === null || chosen.has(k);
const tellAll = () => watchers.forEach((watch) => watch());

const tests = {
  truth: (k, value) => (value === "-1" ? !known(columns.truth[k]) : columns.truth[k] === Number(value)),
  predicted: (k, value) => columns.prediction[k] === Number(value),
  all: () => true,
  state: (k, value) => columns.state[k] === Number(value),
  status: (k, value) => columns.status !== null && data.states[columns.status[k]] === value,
  decisive: (k, value) => decisive.has(k * m + Number(value)),
  lead: (k, value) => columns.lead[k] === Number(value),
  answer: (k, value) => (value === "unknown" ? !known(columns.truth[k]) : isJudged(k) && isWrong(k) === (value === "wrong")),
  views: (k, value) => differ(k) >= data.disagree === (value === "disagree"),
  from: (k, value) => isJudged(k) && predictedProbability(k) >= Number(value) - 1e-9,
  to: (k, value) => predictedProbability(k) < Number(value) - 1e-9 || Number(value) === 1,
  lacks: (k, value) => {
    const views = data.views.map((_, view) => view).filter((view) => !has(k, view));
    return value === "any" ? views.length > 0 : (views.join() || "none") === value;
  },
};
const matching = (query) => {
  const asked = [...new URLSearchParams(query)];
  return ids.map((_, k) => k).filter((k) => asked.every(([name, value]) => tests[name](k, value)));
};
const bar = find("choice");
const choose = (numbers, words, query = "") => {
  chosen = numbers && new Set(numbers);
  asked = query;
  bar.hidden = chosen === null;
  if (chosen !== null) {
    const counted = numbers.filter(isJudged);
    const share = names.length && counted.length
      ? `, ${Math.round((100 * counted.filter((k) => !isWrong(k)).length) / counted.length)} % right` : "";
    find("choice-words").textContent = `${numbers.length} of ${n} samples selected: ${words}${share}`;
  }
  for (const button of document.querySelectorAll("button[data-select]")) {
    button.setAttribute("aria-pressed", String(query !== "" && button.dataset.select === query));
  }
  if (chosen !== null && numbers.length && !chosen.has(picked)) pick(numbers[0]);
  else tellAll();
};
const pick = (k) => {
  picked = k;
  tellAll();
};

// Words that stand for samples become buttons that select them.
const selectable = (node) => {
  const button = make("button", undefined, "link " + node.className);
  button.type = "button";
  Object.assign(button.dataset, node.dataset);
  button.setAttribute("aria-pressed", String(asked !== "" && button.dataset.select === asked));
  button.append(...node.childNodes);
  if (node.title) button.title = node.title;
  node.replaceWith(button);
  return button;
};
if (n) {
  document.querySelectorAll("[data-select]").forEach(selectable);
  document.addEventListener("click", (event) => {
    const button = event.target.closest("button[data-select]");
    if (!button) return;
    const query = button.dataset.select;
    if (query === asked) choose(null);
    else choose(matching(query), button.dataset.words, query);
  });
  find("choice-clear").addEventListener("click", () => choose(null));
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && chosen !== null) choose(null);
  });
}
