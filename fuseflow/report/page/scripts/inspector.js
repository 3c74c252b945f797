// The inspector beside the page tells all about the thing that was chosen. Every name in it leads to its thing.

const inspector = document.getElementById("inspector");
const MOST_LINKS = 40;

function linkTo(number) {
  const link = make("a", { href: "#" + things[number].key, textContent: things[number].name });
  link.dataset.kind = things[number].kind;
  return link;
}

function factRows(facts) {
  return facts.flatMap(([label, text], k) => {
    const again = k > 0 && facts[k - 1][0] === label;
    const value = make("dd", { textContent: text });
    return again ? [value] : [make("dt", { textContent: label }), value];
  });
}

function linkRows(links) {
  return Object.entries(links).flatMap(([label, numbers]) => {
    const shown = numbers.slice(0, MOST_LINKS).map(number => make("li", {}, [linkTo(number)]));
    if (numbers.length > MOST_LINKS) shown.push(make("li", { textContent: `${numbers.length - MOST_LINKS} more` }));
    return [make("dt", { textContent: label }), make("dd", {}, [make("ul", {}, shown)])];
  });
}

function inspect(number) {
  if (number === null) { inspector.replaceChildren(...document.getElementById("hint").content.cloneNode(true).childNodes); return; }
  const thing = things[number];
  const head = make("h2", { textContent: thing.name });
  const kind = make("p", { className: "kind", textContent: KIND_NAMES[thing.kind] });
  const list = make("dl", {}, [...factRows(thing.facts ?? []), ...linkRows(thing.links ?? {})]);
  inspector.replaceChildren(kind, head, list);
  inspector.scrollTop = 0;
}
