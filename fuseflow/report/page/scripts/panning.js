// Pan and zoom: drag, arrow keys and buttons, and the wheel while a graph has the focus. A frame moves one transform, and no layout is done.

const MOST_ZOOM = 3, LEAST_ZOOM = 0.03, STEP = 80;
const places = new WeakMap();

function placeOf(canvas) {
  if (!places.has(canvas)) places.set(canvas, { x: 0, y: 0, zoom: 1, waiting: false, fitted: false });
  return places.get(canvas);
}

function drawingOf(canvas) { return canvas.querySelector("svg"); }

function draw(canvas) {
  const place = placeOf(canvas);
  if (place.waiting) return;
  place.waiting = true;
  requestAnimationFrame(() => {
    place.waiting = false;
    drawingOf(canvas).style.transform = `translate(${place.x}px, ${place.y}px) scale(${place.zoom})`;
  });
}

function moveBy(canvas, x, y) {
  const place = placeOf(canvas);
  place.x += x;
  place.y += y;
  draw(canvas);
}

/** Zoom by a factor, so that the point (x, y) of the canvas stays where it is. */
function zoomBy(canvas, factor, x = canvas.clientWidth / 2, y = canvas.clientHeight / 2) {
  const place = placeOf(canvas);
  const zoom = Math.min(Math.max(place.zoom * factor, LEAST_ZOOM), MOST_ZOOM);
  place.x = x - (x - place.x) * zoom / place.zoom;
  place.y = y - (y - place.y) * zoom / place.zoom;
  place.zoom = zoom;
  draw(canvas);
}

/** Show the whole graph, but not smaller than `least`. */
function fit(canvas, least = LEAST_ZOOM) {
  const svg = drawingOf(canvas), place = placeOf(canvas);
  const wide = Number(svg.getAttribute("width")), high = Number(svg.getAttribute("height"));
  place.zoom = Math.min(Math.max(Math.min(canvas.clientWidth / wide, canvas.clientHeight / high), least), 1);
  place.x = (canvas.clientWidth - wide * place.zoom) / 2;
  place.y = Math.max((canvas.clientHeight - high * place.zoom) / 2, 0);
  place.fitted = true;
  draw(canvas);
}

/** Fit the graphs that are shown for the first time, so that their labels can be read. */
function fitShown() {
  for (const canvas of document.querySelectorAll(".canvas")) {
    if (canvas.clientWidth && !placeOf(canvas).fitted) fit(canvas, 0.55);
  }
}

/** Pan so that an element of a graph is in the middle, unless all of it can be seen. */
function panTo(canvas, element) {
  const place = placeOf(canvas), box = element.getBBox(), shift = element.transform.baseVal.consolidate()?.matrix ?? { e: 0, f: 0 };
  const left = place.x + (box.x + shift.e) * place.zoom, top = place.y + (box.y + shift.f) * place.zoom;
  const right = left + box.width * place.zoom, bottom = top + box.height * place.zoom;
  if (left >= 0 && top >= 0 && right <= canvas.clientWidth && bottom <= canvas.clientHeight) return;
  moveBy(canvas, (canvas.clientWidth - left - right) / 2, (canvas.clientHeight - top - bottom) / 2);
}

const ACTIONS = {
  "+": canvas => zoomBy(canvas, 1.25), "=": canvas => zoomBy(canvas, 1.25), "-": canvas => zoomBy(canvas, 0.8), "0": canvas => fit(canvas),
  ArrowLeft: canvas => moveBy(canvas, STEP, 0), ArrowRight: canvas => moveBy(canvas, -STEP, 0),
  ArrowUp: canvas => moveBy(canvas, 0, STEP), ArrowDown: canvas => moveBy(canvas, 0, -STEP),
};

function listen(canvas) {
  let from = null, moved = 0;
  canvas.addEventListener("pointerdown", event => { from = event.button === 0 ? event : null; moved = 0; });
  canvas.addEventListener("pointermove", event => {
    if (!from || !(event.buttons & 1)) return;
    const x = event.clientX - from.clientX, y = event.clientY - from.clientY;
    moved += Math.abs(x) + Math.abs(y);
    if (moved > 4 && !canvas.hasPointerCapture(event.pointerId)) canvas.setPointerCapture(event.pointerId);
    moveBy(canvas, x, y);
    from = event;
  });
  canvas.addEventListener("click", event => { if (moved > 4) event.preventDefault(); });
  canvas.addEventListener("wheel", event => {
    if (!event.ctrlKey && !event.metaKey && document.activeElement !== canvas) return;
    event.preventDefault();
    const box = canvas.getBoundingClientRect();
    zoomBy(canvas, Math.exp(-event.deltaY / 400), event.clientX - box.left, event.clientY - box.top);
  }, { passive: false });
  canvas.addEventListener("keydown", event => {
    if (event.ctrlKey || event.metaKey || event.altKey || !(event.key in ACTIONS)) return;
    event.preventDefault();
    ACTIONS[event.key](canvas);
  });
  for (const button of canvas.parentElement.querySelectorAll("button[data-action]")) {
    button.addEventListener("click", () => ACTIONS[button.dataset.action](canvas));
  }
}

for (const canvas of document.querySelectorAll(".canvas")) listen(canvas);
