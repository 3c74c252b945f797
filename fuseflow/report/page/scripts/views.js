// Views: the overview, or one region. The address bar says which thing is chosen, and so which view is shown.

const views = [...document.querySelectorAll("[data-view]")];
const OVERVIEW = "overview";
let shownView = null;

/** Return the view in which a thing is shown: that of its region, the present one if the thing stands in it, or the overview. */
function viewOf(number) {
  const thing = things[number];
  if (KINDS_WITH_A_VIEW.has(thing.kind)) return String(number);
  const here = views.find(view => view.dataset.view === shownView);
  if (here && elementsOf[number].some(element => here.contains(element)) && thing.region === undefined) return shownView;
  return thing.region === undefined ? OVERVIEW : String(thing.region);
}

function show(name) {
  const known = views.some(view => view.dataset.view === name) ? name : OVERVIEW;
  if (known === shownView) return;
  shownView = known;
  for (const view of views) view.hidden = view.dataset.view !== known;
  for (const tab of document.querySelectorAll("#tabs a")) {
    const current = (tab.dataset.t ?? OVERVIEW) === known;
    tab.toggleAttribute("aria-current", current);
    if (current) tab.scrollIntoView({ block: "nearest", inline: "nearest" });
  }
  window.scrollTo(0, 0);
  drawShown();
}

/** Scroll every pane of the shown view to the first place where a thing stands in it, without moving the page. */
function reveal(number) {
  const view = views.find(view => view.dataset.view === shownView);
  for (const canvas of view.querySelectorAll(".canvas")) revealInGraph(canvas, number);
  for (const element of elementsOf[number]) {
    if (!view.contains(element)) continue;
    if (element.closest(".canvas")) continue;
    const pane = element.closest(".scrolls");
    if (pane) scrollInside(pane, element);
  }
}

function scrollInside(pane, element) {
  if (pane.dataset.revealed === String(chosen)) return;
  pane.dataset.revealed = String(chosen);
  const box = element.getBoundingClientRect(), around = pane.getBoundingClientRect();
  if (box.top < around.top + 30 || box.bottom > around.bottom) pane.scrollTop += box.top - around.top - around.height / 3;
  if (box.left < around.left || box.right > around.right) pane.scrollLeft += box.left - around.left - 40;
}

/** Show what the address bar says. */
function follow() {
  const number = numberOfKey.get(address()) ?? null;
  if (number === null) { show(OVERVIEW); choose(null); inspect(null); return; }
  show(viewOf(number));
  choose(number);
  inspect(number);
  reveal(number);
  openRun(views.find(view => view.dataset.view === shownView));
}

function goTo(number) {
  const key = number !== null ? things[number].key : shownView === OVERVIEW ? OVERVIEW : things[Number(shownView)].key;
  if (address() === key) follow(); else goToAddress(key);
}

document.addEventListener("click", event => {
  if (event.defaultPrevented || event.target.closest("a, button, input, select, label")) return;
  const number = thingAt(event.target);
  if (number !== null && !getSelection().toString()) goTo(number);
});
