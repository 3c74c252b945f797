// A click on the head of a column sorts its table: numbers with the largest first, words from a to z. Another click turns the order.

function sorted(rows, column, down) {
  const value = row => row.cells[column].dataset.value;
  const numeric = rows.some(row => value(row) !== undefined);
  const order = numeric ? (a, b) => (value(a) ?? -1) - (value(b) ?? -1)
    : (a, b) => a.cells[column].textContent.localeCompare(b.cells[column].textContent, "en", { numeric: true });
  const falls = down ?? numeric;
  return { falls, rows: rows.sort((a, b) => (falls ? order(b, a) : order(a, b))) };
}

function sortBy(table, head, column) {
  const before = head.getAttribute("aria-sort");
  const { falls, rows } = sorted([...table.tBodies[0].rows], column, before ? before === "ascending" : undefined);
  for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
  head.setAttribute("aria-sort", falls ? "descending" : "ascending");
  table.tBodies[0].append(...rows);
}

for (const table of document.querySelectorAll("table.sortable")) {
  [...table.tHead.rows[0].cells].forEach((head, column) => {
    if (!head.firstChild) return;
    const button = make("button", { type: "button" }, [head.firstChild]);
    button.addEventListener("click", () => sortBy(table, head, column));
    head.prepend(button);
  });
}
