// Graphs: laid out in layers by d3-dag, panned and zoomed by d3-zoom, coloured by what nodes are or by what they did. A frame of panning
// moves one transform, and no layout is done.

const { coordGreedy, coordSimplex, curveMonotoneY, decrossTwoLayer, layeredGraph, layeringLongestPath, layeringSimplex, path, select, sugiyama,
  twolayerAgg, twolayerGreedy, zoom, zoomIdentity, zoomTransform } = libraries;
const LEGIBLE = 11 / 12, LARGE = 150, SLOW = 600, PAD = 14, MOST_ZOOM = 3, LEAST_ZOOM = 0.02, LEAST_CANVAS = 240, MOST_CANVAS = 2400, STEP = 80;
const SIZES = { graph: { wide: 178, high: 35, gap: [14, 12] }, order: { wide: 92, high: 34, gap: [14, 26] } };
const behaviours = new WeakMap(), drawings = new WeakMap();

/** Return the middle of every node, the points of every edge, and the size of the whole. */
function laidOut(nodes, edges, { wide, high, gap }) {
  const dag = layeredGraph(), large = nodes.length > LARGE;
  const made = nodes.map((_, k) => dag.node(k));
  for (const [k, edge] of edges.entries()) dag.link(made[edge.from], made[edge.to], k);
  const layering = large ? layeringLongestPath() : layeringSimplex();
  const order = decrossTwoLayer().order(large ? twolayerAgg() : twolayerGreedy().base(twolayerAgg())).passes(large ? 6 : 24);
  const size = sugiyama().layering(layering).decross(order).coord(large ? coordGreedy() : coordSimplex()).nodeSize([wide, high]).gap(gap)(dag);
  const points = [];
  for (const edge of dag.links()) points[edge.data] = edge.points;
  return { ...size, at: made.map(node => [node.x, node.y]), points };
}

const smooth = path().curve(curveMonotoneY);

/** Return the curve of an edge, which leaves and reaches its nodes at their borders. */
function wireOf(points, high) {
  const ends = points.map(point => [...point]);
  ends[0][1] += high / 2;
  ends.at(-1)[1] -= high / 2;
  return smooth(ends);
}

function titled(text) { return makeSvg("title", {}, [text]); }

function nodeElement(node, [x, y], { wide, high }) {
  const border = node.path === undefined ? null : `stroke-width:${1 + 6 * node.path}px`; // thicker for a larger share of the path
  const parts = [
    titled(node.tip), makeSvg("rect", { width: wide, height: high, rx: 5, style: border }),
    ...(node.busy ? [makeSvg("rect", { y: high - 4, width: node.busy * wide, height: 4, rx: 2, class: "load" })] : []),
    makeSvg("text", { x: wide / 2, y: 13, class: "name", "text-anchor": "middle" }, [node.name]),
    makeSvg("text", { x: wide / 2, y: 26, class: "op", "text-anchor": "middle" }, [node.op]),
  ];
  const onPath = node.path === undefined ? "" : " on-path";
  return makeSvg("g", { class: `node ${node.kind}${onPath}`, transform: `translate(${x - wide / 2} ${y - high / 2})`, "data-t": node.t }, parts);
}

function wireElement(edge, points, high, onPath) {
  const marks = (edge.whole ? " whole" : "") + (onPath ? " on-path" : "");
  return makeSvg("path", { class: `wire ${edge.kind}${marks}`, d: wireOf(points, high), "data-t": edge.t }, [titled(edge.tip)]);
}

/** Return the drawing of a graph, with the places of its nodes. */
function graphDrawing(figure, { nodes, edges }, size) {
  const layout = laidOut(nodes, edges, size);
  const isOnPath = k => nodes[k].path !== undefined;
  const wires = edges.map((edge, k) => wireElement(edge, layout.points[k], size.high, isOnPath(edge.from) && isOnPath(edge.to)));
  const boxes = nodes.map((node, k) => nodeElement(node, layout.at[k], size));
  const attributes = { viewBox: `0 0 ${layout.width} ${layout.height}`, width: layout.width, height: layout.height, role: "img", "aria-label": figure.dataset.label };
  return { svg: makeSvg("svg", attributes, [...wires, ...boxes]), layout };
}

/** Return a graph without the nodes of all lanes but the first. */
function oneLane({ nodes, edges }) {
  const kept = nodes.map((node, k) => k).filter(k => !nodes[k].lane), at = new Map(kept.map((k, place) => [k, place]));
  const inside = edges.filter(edge => at.has(edge.from) && at.has(edge.to));
  return { nodes: kept.map(k => ({ ...nodes[k], path: nodes[k].lanes_path ?? nodes[k].path })), edges: inside.map(edge => ({ ...edge, from: at.get(edge.from), to: at.get(edge.to) })) };
}

DRAW.order = (figure, values) => {
  figure.replaceChildren(figure.querySelector("script"), graphDrawing(figure, values, SIZES.order).svg);
};

DRAW.graph = (figure, values) => {
  const shown = figure.dataset.lanes === "all" ? values : oneLane(values);
  if (shown.nodes.length < SLOW) { drawGraph(figure, shown); return; }
  figure.replaceChildren(figure.querySelector("script"), make("p", { textContent: `laying out ${shown.nodes.length.toLocaleString("en")} nodes\u2026` }));
  setTimeout(() => { drawGraph(figure, shown); register(figure); }, 30);
};

function drawGraph(figure, shown) {
  const canvas = figure.closest(".canvas"), { svg, layout } = graphDrawing(figure, shown, SIZES.graph);
  figure.replaceChildren(figure.querySelector("script"), svg);
  drawings.set(canvas, { svg, layout, places: new Map(shown.nodes.map((node, k) => [node.t, layout.at[k]])) });
  if ((canvas.clientWidth - 2 * PAD) / layout.width < LEGIBLE) canvas.closest(".pane").classList.add("whole");
  const scale = Math.min((canvas.clientWidth - 2 * PAD) / layout.width, 1);
  canvas.style.height = `${Math.min(Math.max(layout.height * scale + 2 * PAD, LEAST_CANVAS), MOST_CANVAS)}px`;
  for (const node of figure.querySelectorAll(".node")) colourNode(node, colouring);
  fit(canvas);
}

function moved(canvas, { x, y, k }) {
  const { svg } = drawings.get(canvas) ?? {};
  if (!svg) return;
  svg.style.transform = `translate(${x}px, ${y}px) scale(${k})`;
  canvas.classList.toggle("far", k < LEGIBLE);
}

/** Show the whole graph. */
function fit(canvas) {
  const { layout } = drawings.get(canvas);
  const k = Math.min((canvas.clientWidth - 2 * PAD) / layout.width, (canvas.clientHeight - 2 * PAD) / layout.height, 1);
  const x = (canvas.clientWidth - layout.width * k) / 2, y = Math.max((canvas.clientHeight - layout.height * k) / 2, 0);
  select(canvas).call(behaviours.get(canvas).transform, zoomIdentity.translate(x, y).scale(k));
}

/** Show a thing in a graph, with all lanes if it is in one of the others. */
function revealInGraph(canvas, number) {
  const drawing = drawings.get(canvas), fold = canvas.parentElement.querySelector("button[data-action=lanes]");
  if (!drawing) return;
  if (fold && !drawing.places.has(number) && valuesOf(canvas.querySelector(".figure")).nodes.some(node => node.t === number)) foldLanes(canvas, fold);
  panTo(canvas, number);
}

/** Pan so that a thing of a graph is in the middle, in a size that can be read, unless all of it can be seen so. */
function panTo(canvas, number) {
  const at = drawings.get(canvas)?.places.get(number), place = zoomTransform(canvas);
  if (!at) return;
  const [x, y] = place.apply(at), { wide, high } = SIZES.graph, room = { x: wide / 2 * place.k, y: high / 2 * place.k };
  const seen = x >= room.x && y >= room.y && x + room.x <= canvas.clientWidth && y + room.y <= canvas.clientHeight;
  if (seen && place.k >= LEGIBLE) return;
  const k = Math.max(place.k, 1);
  const centre = zoomIdentity.translate(canvas.clientWidth / 2 - at[0] * k, canvas.clientHeight / 2 - at[1] * k).scale(k);
  select(canvas).call(behaviours.get(canvas).transform, centre);
}

const zoomBy = factor => canvas => select(canvas).call(behaviours.get(canvas).scaleBy, factor);
const moveBy = (x, y) => canvas => select(canvas).call(behaviours.get(canvas).translateBy, x / zoomTransform(canvas).k, y / zoomTransform(canvas).k);
const ACTIONS = {
  "+": zoomBy(1.25), "=": zoomBy(1.25), "-": zoomBy(0.8), "0": fit,
  ArrowLeft: moveBy(STEP, 0), ArrowRight: moveBy(-STEP, 0), ArrowUp: moveBy(0, STEP), ArrowDown: moveBy(0, -STEP),
};

/** A wheel zooms with a key held down, or where the focus is, so that it scrolls the page elsewhere. */
function zooms(element) {
  return event => !event.button && (event.type !== "wheel" || event.ctrlKey || event.metaKey || document.activeElement === element);
}

/** Call the action of a key. */
function onKeys(element, actions) {
  element.addEventListener("keydown", event => {
    if (event.ctrlKey || event.metaKey || event.altKey || !(event.key in actions)) return;
    event.preventDefault();
    actions[event.key](element);
  });
}

function foldLanes(canvas, button) {
  const figure = canvas.querySelector(".figure");
  button.dataset.folded ??= button.textContent;
  figure.dataset.lanes = figure.dataset.lanes === "all" ? "one" : "all";
  button.textContent = figure.dataset.lanes === "all" ? "show one lane" : button.dataset.folded;
  drawFigure(figure);
}

function listen(canvas) {
  const behaviour = zoom().scaleExtent([LEAST_ZOOM, MOST_ZOOM]).filter(zooms(canvas)).on("zoom", event => moved(canvas, event.transform));
  behaviours.set(canvas, behaviour);
  select(canvas).call(behaviour).on("dblclick.zoom", null);
  onKeys(canvas, ACTIONS);
  for (const button of canvas.parentElement.querySelectorAll("button[data-action]")) {
    const { action } = button.dataset;
    button.addEventListener("click", () => (action === "lanes" ? foldLanes(canvas, button) : ACTIONS[action](canvas)));
  }
}

for (const canvas of document.querySelectorAll(".canvas")) listen(canvas);

/** The largest share of a colour in a box, in percent, so that the words in it can be read. */
const MOST_COLOUR = 38;
let colouring = "role";

function colourNode(node, state) {
  const rect = node.querySelector("rect"), share = things[node.dataset.t]?.shares?.[state];
  node.classList.toggle("heated", share !== undefined);
  rect.style.fill = share === undefined ? "" : `color-mix(in oklab, var(--${state}) ${Math.min(share, 100) * MOST_COLOUR / 100}%, var(--raised))`;
}

function colour(state) {
  colouring = state;
  document.documentElement.dataset.colour = state;
  for (const choice of document.querySelectorAll("select.colour")) choice.value = state;
  for (const node of document.querySelectorAll(".canvas .node")) colourNode(node, state);
}

for (const choice of document.querySelectorAll("select.colour")) choice.addEventListener("change", () => colour(choice.value));
