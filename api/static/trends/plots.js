// The charts. Days are those of the plant.

import { color, drawChart, line, markers } from "../shared/chart.js";
import { formatDecimals, LOCALE, translate } from "../shared/language.js";

const percent = { write: (value) => `${formatDecimals(100 * value, value < 0.1 ? 2 : 1)} %`, range: (_, low, high) => [0, 1.1 * (high || 0.01)] };
const logOdds = { write: (value) => formatDecimals(value, 1), range: (_, low, high) => [(low ?? 0) - 0.5, (high ?? 0) + 0.5] };

/** The defect rate with its control limits; periods beyond a limit have a larger point. */
export function drawRate(element, periods, zone) {
  const rate = periods.map(({ inspected, defective }) => (inspected ? defective / inspected : null));
  const out = rate.map((value, index) => (periods[index].out ? value : null));
  const data = [times(periods), rate, ...["low", "high", "centre"].map((name) => periods.map((period) => period[name])), out];
  const series = [
    line(translate("Defect rate"), "--text", { width: 2 }),
    line(translate("Lower limit"), "--accent", { dash: [4, 4], points: { show: false } }),
    line(translate("Upper limit"), "--accent", { dash: [4, 4], points: { show: false } }),
    line(translate("All periods"), "--accent", { points: { show: false } }),
    markers(translate("Beyond a limit"), "--defect"),
  ];
  drawChart(element, data, { time: true, x: days(zone), y: percent, series, bands: [{ series: [3, 2], fill: `${color("--accent")}22` }] });
}

/** Upper bounds of missed defects and shares of false alarms: {begin, missed, alarms}. */
export function drawErrors(element, errors, zone) {
  const data = [times(errors), errors.map(({ missed }) => missed), errors.map(({ alarms }) => alarms)];
  const series = [
    line(translate("Missed, at most"), "--defect", { width: 2 }),
    line(translate("False alarms"), "--review", { width: 2, dash: [6, 4] }),
  ];
  drawChart(element, data, { time: true, x: days(zone), y: percent, series });
}

/** The mean log-odds. */
export function drawScores(element, periods, zone) {
  const data = [times(periods), periods.map(({ log_odds: value }) => value)];
  const series = [line(translate("Mean log-odds"), "--text", { width: 2 })];
  drawChart(element, data, { time: true, x: days(zone), y: logOdds, series });
}

/** The axis of days. */
function days(zone) {
  const format = new Intl.DateTimeFormat(LOCALE, { day: "numeric", month: "short", timeZone: zone });
  return { label: translate("Time"), write: (seconds) => format.format(new Date(1000 * seconds)) };
}

function times(periods) {
  return periods.map(({ begin }) => Date.parse(begin) / 1000);
}
