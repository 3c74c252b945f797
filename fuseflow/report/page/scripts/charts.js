// Charts: rooflines, Pareto fronts and losses, drawn by Observable Plot. A point leads to its thing.

const { axisX, axisY, dot, gridX, gridY, initializer, line, link, plot, text, tip } = libraries;
const LETTER_WIDTH = 6.6, LINE_HEIGHT = 13, MOST_HEIGHT = 380, BESIDE = 9;

const HALO = { fill: "var(--text)", stroke: "var(--raised)", strokeWidth: 4 };

function logAxes(label) { return { type: "log", label, nice: false, tickFormat: "~g", labelArrow: "none" }; }

/** Return how far the domain of some positive numbers reaches, with room around them. */
function around(numbers, below = 1.6, above = 1.6) { return [Math.min(...numbers) / below, Math.max(...numbers) * above]; }

/** Names to the right of their points, or else to the left. One that would hide a point or another name is left out, and appears under the
 * mouse. */
function besidePoints(points, options) {
  const taken = [], named = new Set();
  const mark = anchor => text(points, initializer({ ...options, textAnchor: anchor, lineAnchor: "middle", dx: anchor === "start" ? BESIDE : -BESIDE, fontSize: 11.5 }, (data, facets, { x, y }, scales, { width, marginLeft }) => {
    if (!taken.length) taken.push(...points.map(p => [scales.x(p.x) - 5, scales.x(p.x) + 5, scales.y(p.y)]));
    return { data, facets: facets.map(facet => facet.filter(k => {
      const long = LETTER_WIDTH * data[k].name.length, at = scales.x(x.value[k]), foot = scales.y(y.value[k]);
      const [left, right] = anchor === "start" ? [at + BESIDE, at + BESIDE + long] : [at - BESIDE - long, at - BESIDE];
      const free = taken.every(([start, end, other]) => Math.abs(foot - other) >= LINE_HEIGHT || right < start || end < left);
      if (named.has(k) || right > width || left < marginLeft || !free) return false;
      named.add(k);
      taken.push([left, right, foot]);
      return true;
    })) };
  }));
  return [mark("start"), mark("end")];
}

function short(name, letters = 26) { return name.length > letters ? name.slice(0, letters - 1) + "\u2026" : name; }

/** Draw a chart into a figure. `points` are the data of its marks with a class `points`; each leads to its thing. */
function chart(figure, points, options) {
  const width = figure.clientWidth;
  const svg = plot({ width, height: Math.min(Math.max(width * 0.62, 230), MOST_HEIGHT), marginLeft: 58, marginBottom: 40, marginRight: 24, ...options });
  svg.setAttribute("aria-label", figure.dataset.label);
  svg.setAttribute("role", "group");
  for (const circle of svg.querySelectorAll("g.points > a > *")) {
    const point = points[circle.__data__ ?? 0];
    circle.dataset.t = point.t;
    circle.parentNode.setAttribute("aria-label", point.tip);
  }
  figure.replaceChildren(figure.querySelector("script"), svg);
}

function pointMarks(points, fill = "var(--busy)") {
  const href = p => "#" + things[p.t].key;
  return [
    dot(points, { x: "x", y: "y", r: p => (p.best === false ? 4 : 5.5), fill: p => (p.hollow ? "var(--raised)" : fill), stroke: fill, strokeWidth: 2, href, className: "points", title: "tip" }),
    ...besidePoints(points.filter(p => p.best !== false).map(p => ({ ...p, name: short(p.name) })), { x: "x", y: "y", text: "name", ...HALO }),
  ];
}

DRAW.roofline = (figure, { points, peak, roof }) => {
  const speeds = points.flatMap(p => [p.y, p.ceiling]), most = roof ? Math.max(roof.units, ...speeds) : null;
  const ridge = peak && most ? [most / peak] : [];
  const x = around([...points.map(p => p.x), ...ridge.flatMap(r => [r / 9, r * 3])], 1.6, 3.2);
  const y = around([...speeds, ...(most ? [most] : peak ? [peak * x[0]] : [])], 1.8, 2.8);
  const lines = [];
  if (peak) {
    const end = most ? most / peak : Math.min(x[1], y[1] / peak), start = Math.max(x[0], y[0] / peak);
    lines.push(line([[start, peak * start], [end, peak * end]], { stroke: "var(--memory)", strokeWidth: 2.5, className: "roof memory-roof" }));
    lines.push(text([[end, peak * end]], { text: () => `memory:\n${peak} bytes/cycle`, textAnchor: "end", lineAnchor: "bottom", dx: -4, dy: -5, fontSize: 11.5, ...HALO, className: "roof-name" }));
  }
  if (most) {
    const start = peak ? most / peak : x[0];
    lines.push(line([[start, most], [x[1], most]], { stroke: "var(--path)", strokeWidth: 2.5, className: "roof compute-roof" }));
    lines.push(text([[x[1], most]], { text: () => `computing:\n${most} FLOPs/cycle`, textAnchor: "end", lineAnchor: "bottom", dx: -2, dy: -5, fontSize: 11.5, ...HALO, className: "roof-name" }));
  }
  chart(figure, points, {
    x: { ...logAxes("FLOPs a byte \u2192"), domain: x }, y: { ...logAxes("\u2191 FLOPs a cycle"), domain: y },
    marks: [
      gridX({ ticks: 5 }), gridY({ ticks: 5 }), axisX({ ticks: 5, tickFormat: "~g", fontSize: 11.5, labelAnchor: "center", label: "FLOPs a byte" }),
      axisY({ ticks: 5, tickFormat: "~g", fontSize: 11.5, label: "FLOPs a cycle" }), ...lines,
      link(points, { x1: "x", x2: "x", y1: "y", y2: "ceiling", stroke: "var(--soft)", strokeDasharray: "3 3" }),
      link(points, { x1: p => p.x / 1.07, x2: p => p.x * 1.07, y1: "ceiling", y2: "ceiling", stroke: "var(--text)", strokeWidth: 2 }),
      ...pointMarks(points),
    ],
  });
};

/** Return the corners of a line that falls in steps through a front, below which no point is. */
function stairs(front) {
  const sorted = [...front].sort((a, b) => a.x - b.x || b.y - a.y);
  return sorted.flatMap((p, k) => (k ? [{ x: p.x, y: sorted[k - 1].y }, p] : [p]));
}

const HUES = ["var(--busy)", "var(--path)", "var(--good)", "var(--memory)", "var(--starved)", "var(--text)"];

DRAW.pareto = (figure, { points, across, up }) => {
  const workloads = [...new Set(points.map(p => p.workload))], hue = p => HUES[workloads.indexOf(p.workload) % HUES.length];
  const fronts = workloads.map(name => stairs(points.filter(p => p.best && p.workload === name)));
  const href = p => "#" + things[p.t].key;
  chart(figure, points, {
    x: points.some(p => !p.x) ? { type: "symlog", constant: Math.min(...points.map(p => p.x || Infinity)), domain: [0, 1.9 * Math.max(...points.map(p => p.x))] }
      : { ...logAxes(across), domain: around(points.map(p => p.x), 1.3, 1.9) },
    y: { ...logAxes(up), domain: around(points.map(p => p.y), 1.3, 1.3) },
    marks: [
      gridX({ ticks: 5 }), gridY({ ticks: 5 }), axisX({ ticks: 5, tickFormat: "~s", fontSize: 11.5, labelAnchor: "center", label: across }), axisY({ ticks: 5, tickFormat: "~s", fontSize: 11.5, label: up }),
      ...fronts.map((front, k) => line(front, { x: "x", y: "y", stroke: HUES[k % HUES.length], strokeWidth: 1.5, className: "front" })),
      dot(points, { x: "x", y: "y", r: p => (p.best ? 5.5 : 4), fill: p => (p.hollow ? "var(--raised)" : hue(p)), stroke: hue, strokeWidth: 1.5, href, title: "tip", className: "points" }),
      ...besidePoints(points.filter(p => p.best).map(p => ({ ...p, name: short(p.name) })), { x: "x", y: "y", text: "name", ...HALO }),
    ],
  });
  if (workloads.length < 2) return;
  const names = workloads.map((name, k) => make("span", {}, [make("i", { style: `background:${HUES[k % HUES.length]}` }), name]));
  figure.append(make("p", { className: "legend hues" }, names));
};

DRAW.losses = (figure, { points }) => {
  const own = points.filter(p => !p.hollow), other = points.filter(p => p.hollow), shown = own.length <= 40 ? points : [];
  const at = { x: "step", y: "loss" };
  chart(figure, points, {
    x: { label: "step", tickFormat: "d" }, y: { label: "loss" },
    marks: [
      gridY({ ticks: 5 }), axisX({ ticks: Math.min(own.length, 6), tickFormat: k => (Number.isInteger(k) ? String(k) : ""), fontSize: 11.5, labelAnchor: "center" }), axisY({ ticks: 5, tickFormat: ".4~g", fontSize: 11.5 }),
      line(other, { ...at, stroke: "var(--soft)", strokeDasharray: "3 3" }), line(own, { ...at, stroke: "var(--busy)", strokeWidth: 1.8 }),
      dot(shown, { ...at, r: p => (p.hollow ? 6 : 3.5), fill: p => (p.hollow ? "none" : "var(--busy)"), stroke: "var(--busy)", className: "loss", title: p => `step ${p.step}: ${p.loss}` }),
    ],
  });
};
