// The charts. Days are those of the plant.

import { formatDecimals, LOCALE, translate } from "../shared/language.js";
import uPlot from "../vendor/uplot/uPlot.esm.js";

const HEIGHT_PX = 240;
const POINT_PX = 7;
const percent = (value) => (value === null ? "–" : `${formatDecimals(100 * value, value < 0.1 ? 2 : 1)} %`);

/** The defect rate with its control limits; periods beyond a limit have a larger point. */
export function drawRate(element, periods, zone) {
  const rate = periods.map(({ inspected, defective }) => (inspected ? defective / inspected : null));
  const out = rate.map((value, index) => (periods[index].out ? value : null));
  const data = [times(periods), rate, ...["low", "high", "centre"].map((name) => periods.map((period) => period[name])), out];
  draw(element, data, zone, percent, [
    line(translate("Defect rate"), "--text", { width: 2 }),
    line(translate("Lower limit"), "--accent", { dash: [4, 4], points: { show: false } }),
    line(translate("Upper limit"), "--accent", { dash: [4, 4], points: { show: false } }),
    line(translate("All periods"), "--accent", { points: { show: false } }),
    line(translate("Beyond a limit"), "--defect", { width: 0, points: { show: true, size: 2 * POINT_PX, fill: color("--defect") } }),
  ], [{ series: [3, 2], fill: withAlpha("--accent") }]);
}

/** Upper bounds of missed defects and shares of false alarms: {begin, missed, alarms}. */
export function drawErrors(element, errors, zone) {
  const data = [times(errors), errors.map(({ missed }) => missed), errors.map(({ alarms }) => alarms)];
  draw(element, data, zone, percent, [
    line(translate("Missed, at most"), "--defect", { width: 2 }),
    line(translate("False alarms"), "--review", { width: 2, dash: [6, 4] }),
  ]);
}

/** The mean log-odds. */
export function drawScores(element, periods, zone) {
  const data = [times(periods), periods.map(({ log_odds: value }) => value)];
  draw(element, data, zone, (value) => (value === null ? "–" : formatDecimals(value, 1)), [line(translate("Mean log-odds"), "--text", { width: 2 })]);
}

function draw(element, data, zone, write, series, bands = []) {
  element.chart?.destroy();
  const days = new Intl.DateTimeFormat(LOCALE, { day: "numeric", month: "short", timeZone: zone });
  const dayText = (seconds) => days.format(new Date(1000 * seconds));
  const axis = { stroke: color("--quiet"), grid: { stroke: color("--line"), width: 1 }, ticks: { stroke: color("--line") } };
  const options = {
    width: element.clientWidth,
    height: HEIGHT_PX,
    series: [{ label: translate("Time"), value: (_, seconds) => (seconds === null ? "–" : dayText(seconds)) }, ...series.map((one) => ({ ...one, value: (_, value) => write(value) }))],
    bands,
    padding: [null, 16, null, null],
    axes: [{ ...axis, values: (_, values) => values.map(dayText) }, { ...axis, size: 70, values: (_, values) => values.map(write) }],
    scales: { y: { range: (_, low, high) => (write === percent ? [0, 1.1 * (high || 0.01)] : [(low ?? 0) - 0.5, (high ?? 0) + 0.5]) } },
  };
  element.chart = new uPlot(options, data, element);
  element.resizing ??= observe(element);
}

function observe(element) {
  const observer = new ResizeObserver(() => requestAnimationFrame(() => element.chart.setSize({ width: element.clientWidth, height: HEIGHT_PX })));
  observer.observe(element);
  return observer;
}

function line(label, name, more = {}) {
  return { label, stroke: color(name), points: { size: POINT_PX }, ...more };
}

function times(periods) {
  return periods.map(({ begin }) => Date.parse(begin) / 1000);
}

function color(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

function withAlpha(name) {
  return `${color(name)}22`;
}
