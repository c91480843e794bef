const data = JSON.parse(document.getElementById("data").textContent);
const root = document.documentElement;
root.classList.add("js");
const find = (id) => document.getElementById(id);
const make = (tag, text, css) => {
  const node = document.createElement(tag);
  if (text !== undefined) node.textContent = text;
  if (css) node.className = css;
  return node;
};
const draw = (tag, attributes) => {
  const node = document.createElementNS(document.querySelector("svg").namespaceURI, tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  return node;
};

// Columns are texts of numbers to the base 36, all of one width; the largest means "not known".
const read = (column) => {
  if (!column) return null;
  const { width, text } = column, unknown = 36 ** width - 1;
  const values = new Float64Array(text.length / width);
  for (let k = 0, at = 0; k < values.length; k++) {
    let code = 0;
    for (const end = at + width; at < end; at++) {
      const sign = text.charCodeAt(at);
      code = 36 * code + sign - (sign < 58 ? 48 : 87);
    }
    values[k] = code === unknown ? NaN : column.from + code / column.per;
  }
  return values;
};
const ids = data.ids, names = data.classes, n = ids.length, m = data.views.length;
const columns = {};
for (const [name, column] of Object.entries(data.columns || {})) columns[name] = read(column);
const numberOf = new Map(ids.map((id, k) => [id, k]));
const absent = new Set(columns.absent);
const has = (k, view) => !absent.has(k * m + view);

const fixed = (value, places) => {
  const shown = value.toFixed(places);
  return (Number(shown) === 0 ? shown.replace("-", "") : shown).replace("-", "−");
};
const short = (words, most) => {
  const signs = [...words], tail = Math.floor(0.4 * most);
  return signs.length <= most ? words : signs.slice(0, most - tail - 1).join("") + "…" + signs.slice(-tail).join("");
};
const known = (value) => !Number.isNaN(value);
const outcome = (value) => (!known(value) ? "" : names.length ? names[value] : fixed(value, data.valuePlaces));
const probability = (value) => (known(value) ? fixed(value, 2) : "");
const signed = (value, places) => {
  const shown = fixed(value, places);
  return value > 0 && Number(shown) ? "+" + shown : shown;
};
const contribution = (value) => signed(value, data.contributionPlaces);

// Predictions of samples that the model has learned from do not count.
const learned = new Set(columns.learned), decisive = new Set(columns.decisive);
const byPosition = (positions, values) => new Map([...(values ? positions : [])].map((at, k) => [at, values[k]]));
const withoutOf = byPosition(columns.decisive, columns.without), familiarityOf = byPosition(columns.unfamiliar, columns.familiarity);
const isJudged = (k) => known(columns.truth[k]) && !learned.has(k);
const isWrong = (k) => names.length > 0 && isJudged(k) && columns.truth[k] !== columns.prediction[k];
const differ = (k) => (columns.disagreement ? columns.disagreement[k] : NaN);
const predictedProbability = (k) => (columns.probabilities ? columns.probabilities[k * names.length + columns.prediction[k]] : NaN);
const offBy = (k) => (isJudged(k) ? Math.abs(columns.truth[k] - columns.prediction[k]) : NaN);
const colourOf = (view) => `v${view % data.colours}` + (Math.floor(view / data.colours) % 2 ? " hollow" : "");
