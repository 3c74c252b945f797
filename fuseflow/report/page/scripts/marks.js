// Marks: what the mouse is on, and what was chosen, is marked wherever its name stands.

let hovered = null, chosen = null;

/** Mark things. A table of which every row would be marked is left as it is, since that says nothing. */
function mark(numbers, name, on) {
  const bodies = new Set();
  for (const number of numbers) {
    for (const element of elementsOf[number]) {
      element.classList.toggle(name, on);
      if (on && element.tagName === "TR") bodies.add(element.parentNode);
    }
  }
  for (const { rows } of bodies) {
    if (rows.length > 1 && [...rows].every(row => row.classList.contains(name))) for (const row of rows) row.classList.remove(name);
  }
}

function hover(number) {
  if (number === hovered) return;
  if (hovered !== null) { mark([hovered], "hovered", false); mark(belonging(hovered), "near-hovered", false); }
  hovered = number;
  if (number !== null) { mark([number], "hovered", true); mark(belonging(number), "near-hovered", true); }
}

/** Mark a thing as chosen, and what belongs to it as near. */
function choose(number) {
  if (chosen !== null) { mark([chosen], "chosen", false); mark(belonging(chosen), "near", false); }
  chosen = number;
  document.documentElement.classList.toggle("choosing", number !== null && !KINDS_WITH_A_VIEW.has(things[number].kind));
  if (number === null) return;
  mark([number], "chosen", true);
  mark(belonging(number), "near", true);
}

/** Mark an element that was drawn after its thing was chosen. */
function markNew(element, number) {
  if (chosen === null) return;
  element.classList.toggle("chosen", number === chosen);
  element.classList.toggle("near", number !== chosen && belonging(chosen).includes(number) && element.tagName !== "TR");
}

document.addEventListener("pointerover", event => hover(thingAt(event.target)));
document.addEventListener("pointerleave", () => hover(null));
document.addEventListener("focusin", event => hover(thingAt(event.target)));
