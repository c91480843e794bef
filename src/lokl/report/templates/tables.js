// A click on a heading sorts, another one turns the order round; rows without a number stay last.
for (const table of document.querySelectorAll("table.sortable")) {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, place) => {
    const title = head.querySelector(".sort");
    if (!title) return;
    const button = make("button", title.textContent);
    button.type = "button";
    title.replaceChildren(button);
    button.addEventListener("click", () => {
      const value = (row) => row.cells[place].dataset.value ?? row.cells[place].textContent.trim();
      const rows = [...table.tBodies[0].rows];
      const numeric = rows.every((row) => value(row) === "" || !Number.isNaN(Number(value(row))));
      const first = numeric ? "descending" : "ascending";
      const turned = { ascending: "descending", descending: "ascending" };
      const order = turned[head.getAttribute("aria-sort")] ?? first;
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", order);
      const sign = order === "descending" ? -1 : 1;
      rows.sort((a, b) => {
        const [x, y] = [value(a), value(b)];
        if (x === "" || y === "") return (x === "") - (y === "");
        return sign * (numeric ? x - y : x.localeCompare(y));
      });
      table.tBodies[0].append(...rows);
    });
  });
}

// Of a long table, the first rows are enough until somebody asks.
const FEW = 12;
for (const table of document.querySelectorAll("table.sortable")) {
  const rows = () => [...table.tBodies[0].rows];
  if (rows().length <= FEW + 3) continue;
  const button = make("button", `show all ${rows().length} rows`);
  button.type = "button";
  const fold = () => rows().forEach((row, k) => { row.hidden = k >= FEW; });
  const open = () => { rows().forEach((row) => { row.hidden = false; }); button.remove(); };
  fold();
  table.tHead.addEventListener("click", () => { if (button.isConnected) fold(); });
  button.addEventListener("click", open);
  table.after(button);
}
