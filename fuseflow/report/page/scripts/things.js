// The things of the page by number, and the elements that name each of them.

const things = JSON.parse(document.getElementById("data").textContent).things;
const numberOfKey = new Map(things.map((thing, number) => [thing.key, number]));
const elementsOf = things.map(() => []);

const KIND_NAMES = { region: "region", node: "node", fifo: "FIFO", tensor: "tensor", einsum: "Einsum", line: "line", point: "point" };
const KINDS_WITH_A_VIEW = new Set(["region", "point"]);

/** Know the elements below a root as elements that name their things, and forget those that are gone. */
function register(root) {
  for (const element of root.querySelectorAll("[data-t]")) {
    const number = Number(element.dataset.t);
    elementsOf[number] = elementsOf[number].filter(other => other !== element && other.isConnected);
    elementsOf[number].push(element);
    markNew(element, number);
  }
}

/** Return the number of the thing that an element of the page names, or null. */
function thingAt(target) {
  const element = target instanceof Element ? target.closest("[data-t]") : null;
  return element ? Number(element.dataset.t) : null;
}

/** Return the things of other kinds that belong to a thing: the Einsum of a node, the nodes of a line. To a region or a point all that is
 * in its view belongs, and marking all would mark nothing. */
function belonging(number) {
  const thing = things[number];
  if (KINDS_WITH_A_VIEW.has(thing.kind)) return [];
  const linked = Object.values(thing.links ?? {}).flat();
  return linked.filter(other => things[other].kind !== thing.kind && !KINDS_WITH_A_VIEW.has(things[other].kind));
}
