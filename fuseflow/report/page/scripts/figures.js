// Figures: each is drawn from the values in it when it is shown for the first time, and charts again when their width changes.

const DRAW = {};
const LEAST_WIDTH = 40;

function make(tag, properties = {}, children = []) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
}

const SVG = "http://www.w3.org/2000/svg";

function makeSvg(tag, attributes = {}, children = []) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) if (value !== undefined && value !== null) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

function valuesOf(figure) { return JSON.parse(figure.querySelector("script").textContent); }

/** Draw the figures of the shown view that are not drawn yet. */
function drawShown() {
  for (const figure of document.querySelectorAll(".figure")) if (figure.clientWidth > LEAST_WIDTH && !figure.dataset.drawn) drawFigure(figure);
}

function drawFigure(figure) {
  figure.dataset.drawn = figure.clientWidth;
  DRAW[figure.dataset.figure](figure, valuesOf(figure));
  register(figure);
}

const resized = new ResizeObserver(entries => {
  for (const { target } of entries) {
    const wide = target.clientWidth;
    if (wide > LEAST_WIDTH && target.dataset.drawn && Math.abs(wide - target.dataset.drawn) > 4) drawFigure(target);
  }
});
for (const figure of document.querySelectorAll(".figure.roofline, .figure.pareto, .figure.losses")) resized.observe(figure);
