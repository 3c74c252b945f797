// Keys, and the legend that lists them and says what the columns of the tables mean.

const legend = document.getElementById("legend");

function columnMeanings() {
  const meanings = new Map();
  for (const head of document.querySelectorAll("th[title]")) meanings.set(head.firstChild.textContent, head.title);
  return [...meanings];
}

function openLegend() {
  legend.querySelector("dl").replaceChildren(...factRows(columnMeanings()));
  legend.showModal();
}

function turnTheme() {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
}

/** Show the view that is `steps` after the present one. */
function turn(steps) {
  const at = views.findIndex(view => view.dataset.view === shownView);
  const next = views[(at + steps + views.length) % views.length].dataset.view;
  goToAddress(next === OVERVIEW ? OVERVIEW : things[Number(next)].key);
}

function nextColour() {
  const select = document.querySelector("select.colour");
  if (select) colour(select.options[(select.selectedIndex + 1) % select.options.length].value);
}

const KEYS = {
  "/": () => search.focus(), "?": openLegend, t: turnTheme, o: () => goToAddress(OVERVIEW),
  "[": () => turn(-1), "]": () => turn(1), c: nextColour, Escape: () => goTo(null),
};

document.addEventListener("keydown", event => {
  const typing = event.target.closest("input, select, textarea, dialog");
  if (typing || event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || !(event.key in KEYS)) return;
  event.preventDefault();
  KEYS[event.key]();
});
document.getElementById("theme").addEventListener("click", turnTheme);
document.getElementById("keys").addEventListener("click", openLegend);
