// What the scripts of a page use of its libraries. Everything else of them is left out of the bundle.
export { axisX, axisY, dot, gridX, gridY, initializer, line, link, plot, ruleY, text, tip } from "@observablehq/plot";
export { axisBottom } from "d3-axis";
export { coordGreedy, coordSimplex, decrossTwoLayer, graph as layeredGraph, layeringLongestPath, layeringSimplex, sugiyama, twolayerAgg, twolayerGreedy } from "d3-dag";
export { scaleLinear } from "d3-scale";
export { select } from "d3-selection";
export { curveMonotoneY, line as path } from "d3-shape";
export { zoom, zoomIdentity, zoomTransform } from "d3-zoom";
