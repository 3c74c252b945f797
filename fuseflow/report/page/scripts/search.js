// Search over the names of all things. Enter or a click opens a result, arrows go through them.

const search = document.getElementById("search"), results = document.getElementById("results");
const MOST_RESULTS = 30;
const lowered = things.map(thing => thing.name.toLowerCase());

/** Return the name of a node without its lane, as in `acc_l` of `acc_l/i2`. */
function withoutLane(thing) { return thing.kind === "node" || thing.kind === "fifo" ? thing.name.replace(/\/[^.]*/, "") : thing.name; }

/** Return the name under which copies of a thing in other lanes are listed once. */
function family(number) { const thing = things[number]; return `${thing.kind} ${thing.region ?? ""} ${withoutLane(thing)}`; }

const copies = new Map();
things.forEach((_, number) => copies.set(family(number), (copies.get(family(number)) ?? 0) + 1));

/** Return the numbers of the things whose names contain all words of a text, those that begin with it first; of copies in lanes, the first,
 * unless the text names a lane. */
function matches(text) {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  if (!words.length) return [];
  const matching = things.map((_, number) => number).filter(number => words.every(word => lowered[number].includes(word)));
  const seen = new Set(), isNew = number => text.includes("/") || (!seen.has(family(number)) && seen.add(family(number)));
  const rank = number => (lowered[number] === words[0] ? 0 : lowered[number].startsWith(words[0]) ? 1 : 2);
  return matching.filter(isNew).sort((a, b) => rank(a) - rank(b) || a - b);
}

function resultOf(number) {
  const thing = things[number];
  const where = thing.region === undefined ? "" : things[thing.region].name;
  const lanes = search.value.includes("/") ? 1 : copies.get(family(number));
  const told = ` ${KIND_NAMES[thing.kind]}${lanes > 1 ? ` in ${lanes} lanes` : ""}${where && ", " + where}`;
  const link = make("a", { href: "#" + thing.key }, [
    make("b", { textContent: lanes > 1 ? withoutLane(thing) : thing.name }), make("span", { textContent: told }),
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
