// Time lines: a bar of regions, or the strips of all nodes of a table, which are zoomed together. Their style moves them by two numbers.

const { axisBottom, scaleLinear } = libraries;
const LEAST_CYCLES = 20, TICK = 90;

/** Let a time line be zoomed. Its lens has the axis and takes the keys; what is done on bars and strips is done on it. */
function timeline(box) {
  const lens = box.querySelector(".lens"), cycles = Number(box.dataset.cycles);
  const axis = makeSvg("svg", { class: "axis", height: 20 });
  lens.replaceChildren(axis);
  const behaviour = zoom().filter(zooms(lens)).on("zoom", () => redraw());

  function redraw() {
    const wide = lens.clientWidth;
    if (!wide) return;
    const place = zoomTransform(lens), shown = place.rescaleX(scaleLinear([0, cycles], [0, wide]));
    axis.setAttribute("width", wide);
    select(axis).call(axisBottom(shown).ticks(Math.max(Math.floor(wide / TICK), 2)).tickSize(4).tickPadding(3));
    const anchor = cycle => (shown(cycle) < 16 ? "start" : shown(cycle) > wide - 22 ? "end" : "middle");
    select(axis).selectAll(".tick").select("text").attr("text-anchor", anchor);
    box.style.setProperty("--zoom", place.k);
    box.style.setProperty("--from", -place.x / wide);
    box.classList.toggle("zoomed", place.k > 1.001);
  }

  function resize() {
    const wide = lens.clientWidth;
    behaviour.extent([[0, 0], [wide, 20]]).translateExtent([[0, 0], [wide, 20]]).scaleExtent([1, Math.max(cycles / LEAST_CYCLES, 1)]);
    redraw();
  }

  const zoomLens = factor => () => select(lens).call(behaviour.scaleBy, factor);
  const moveLens = share => () => select(lens).call(behaviour.translateBy, -share * lens.clientWidth / zoomTransform(lens).k, 0);
  const reset = () => select(lens).call(behaviour.transform, zoomIdentity);
  const actions = {
    "+": zoomLens(1.5), "=": zoomLens(1.5), "-": zoomLens(1 / 1.5), "0": reset, Home: reset, ArrowLeft: moveLens(-0.2), ArrowRight: moveLens(0.2),
  };
  select(lens).call(behaviour);
  onKeys(lens, actions);
  for (const button of box.querySelectorAll("button[data-time]")) button.addEventListener("click", actions[button.dataset.time]);
  forward(box, lens);
  new ResizeObserver(resize).observe(lens);
}

/** Do on the lens what is done on the bars and strips below it, which stand at the same places across. */
function forward(box, lens) {
  let from = null;
  for (const drawn of box.querySelectorAll(".over-time")) {
    drawn.addEventListener("wheel", event => {
      if (!zooms(lens)(event)) return;
      event.preventDefault();
      lens.dispatchEvent(new WheelEvent("wheel", event));
    }, { passive: false });
    drawn.addEventListener("mousedown", event => {
      if (event.button) return;
      from = event.clientX;
      event.preventDefault(); // else the browser drags a link
      lens.focus({ preventScroll: true });
      lens.dispatchEvent(new MouseEvent("mousedown", event));
    });
    drawn.addEventListener("click", event => {
      if (from === null || Math.abs(event.clientX - from) < 5) return;
      event.preventDefault();
      event.stopPropagation();
    }, true);
  }
}

for (const box of document.querySelectorAll(".timeline")) timeline(box);
