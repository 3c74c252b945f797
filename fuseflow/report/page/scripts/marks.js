// Marks: what the mouse is on, and what was chosen, is marked wherever its name stands.

let hovered = null, chosen = null;

function mark(numbers, name, on) {
  for (const number of numbers) for (const element of elementsOf[number]) element.classList.toggle(name, on);
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

document.addEventListener("pointerover", event => hover(thingAt(event.target)));
document.addEventListener("pointerleave", () => hover(null));
document.addEventListener("focusin", event => hover(thingAt(event.target)));
