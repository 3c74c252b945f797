// The things of the page by number, and the elements that name each of them.

const things = JSON.parse(document.getElementById("data").textContent).things;
const numberOfKey = new Map(things.map((thing, number) => [thing.key, number]));
const elementsOf = things.map(() => []);
for (const element of document.querySelectorAll("[data-t]")) elementsOf[element.dataset.t].push(element);

const KIND_NAMES = { region: "region", node: "node", fifo: "FIFO", tensor: "tensor", einsum: "Einsum", line: "line", point: "point" };
const KINDS_WITH_A_VIEW = new Set(["region", "point"]);

/** Return the number of the thing that an element of the page names, or null. */
function thingAt(target) {
  const element = target instanceof Element ? target.closest("[data-t]") : null;
  return element ? Number(element.dataset.t) : null;
}

/** Return the things of other kinds that belong to a thing: the Einsum of a node, the nodes of a line. */
function belonging(number) {
  const thing = things[number];
  const linked = Object.values(thing.links ?? {}).flat();
  return linked.filter(other => things[other].kind !== thing.kind && !KINDS_WITH_A_VIEW.has(things[other].kind));
}
