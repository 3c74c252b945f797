// Search over the names of all things. Enter or a click opens a result, arrows go through them.

const search = document.getElementById("search"), results = document.getElementById("results");
const MOST_RESULTS = 30;
const lowered = things.map(thing => thing.name.toLowerCase());

/** Return the numbers of the things whose names contain all words of a text, those that begin with it first. */
function matches(text) {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  if (!words.length) return [];
  const matching = things.map((_, number) => number).filter(number => words.every(word => lowered[number].includes(word)));
  const rank = number => (lowered[number] === words[0] ? 0 : lowered[number].startsWith(words[0]) ? 1 : 2);
  return matching.sort((a, b) => rank(a) - rank(b) || a - b);
}

function resultOf(number) {
  const thing = things[number];
  const where = thing.region === undefined ? "" : things[thing.region].name;
  const link = make("a", { href: "#" + thing.key }, [
    make("b", { textContent: thing.name }), make("span", { textContent: ` ${KIND_NAMES[thing.kind]}${where && ", " + where}` }),
  ]);
  return make("li", {}, [link]);
}

function list() {
  const numbers = matches(search.value);
  const shown = numbers.slice(0, MOST_RESULTS).map(resultOf);
  const more = numbers.length - shown.length;
  if (more > 0) shown.push(make("li", { className: "soft", textContent: `${more} more` }));
  if (search.value.trim() && !numbers.length) shown.push(make("li", { className: "soft", textContent: "nothing has this name" }));
  results.replaceChildren(...shown);
  results.hidden = !shown.length;
}

function closeSearch() { results.hidden = true; search.value = ""; document.activeElement.blur(); }

function step(event) {
  const links = [...results.querySelectorAll("a")], at = links.indexOf(document.activeElement);
  if (event.key === "ArrowDown") links[Math.min(at + 1, links.length - 1)]?.focus();
  else if (event.key === "ArrowUp") (at > 0 ? links[at - 1] : search).focus();
  else if (event.key === "Enter" && document.activeElement === search) links[0]?.click();
  else if (event.key === "Escape") closeSearch();
  else return;
  event.preventDefault();
}

search.addEventListener("input", list);
search.parentElement.addEventListener("keydown", step);
results.addEventListener("click", event => { if (event.target.closest("a")) closeSearch(); });
document.addEventListener("pointerdown", event => { if (!search.parentElement.contains(event.target)) results.hidden = true; });
