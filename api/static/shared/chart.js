// Line charts in the colours of the pages; they need the script vendor/uplot/uPlot.iife.min.js in the page.

const HEIGHT_PX = 240;
const POINT_PX = 7;

/**
 * Draws columns of numbers, the first of which is x, into an element; replaces its former chart.
 *
 * `x` and `y` are {label, write(value), range}: title, text of a value, and optionally the limits of the axis as uPlot
 * wants them; `series` are made by `line`; `bands` as of uPlot.
 */
export function drawChart(element, data, { x, y, series, bands = [], time = false }) {
  element.chart?.destroy();
  const axis = { stroke: color("--quiet"), grid: { stroke: color("--line"), width: 1 }, ticks: { stroke: color("--line") } };
  const known = (write) => (_, value) => (value === null ? "–" : write(value));
  const options = {
    width: element.clientWidth,
    height: HEIGHT_PX,
    series: [{ label: x.label, value: known(x.write) }, ...series.map((one) => ({ ...one, value: known(y.write) }))],
    bands,
    padding: [null, 32, null, null], // the last date is centred on the edge
    axes: [{ ...axis, values: (_, values) => values.map(x.write) }, { ...axis, size: 70, values: (_, values) => values.map(y.write) }],
    scales: { x: { time }, y: y.range ? { range: y.range } : {} },
  };
  element.chart = new window.uPlot(options, data, element);
  element.resizing ??= observe(element);
}

/** A line of a chart with the colour of a custom property of base.css. */
export function line(label, name, more = {}) {
  return { label, stroke: color(name), points: { size: POINT_PX }, ...more };
}

/** Points without a line. */
export function markers(label, name) {
  return line(label, name, { width: 0, points: { show: true, size: 2 * POINT_PX, fill: color(name) } });
}

/** The value of a custom property. */
export function color(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

function observe(element) {
  const observer = new ResizeObserver(() => requestAnimationFrame(() => element.chart.setSize({ width: element.clientWidth, height: HEIGHT_PX })));
  observer.observe(element);
  return observer;
}
