// Counts by class, station and version.

import { createElement } from "../shared/dom.js";
import { formatDecimals, formatNumber, LOCALE, translate } from "../shared/language.js";
import { percent } from "./sentences.js";

/** The classes with their share of all defects and the sum of the shares so far (a Pareto table). */
export function showClasses(table, classes) {
  const total = classes.reduce((sum, { count }) => sum + count, 0);
  let before = 0;
  const rows = classes.map(({ label, count }) => {
    before += count;
    return [label, formatNumber(count), bar(count / total), percent(before / total)];
  });
  fill(table, [translate("Class"), translate("Defects"), translate("Share"), translate("Sum")], rows, translate("No defects."));
}

/** Stations or versions with their defect rates. */
export function showGroups(table, title, groups) {
  const highest = Math.max(...groups.map(rateOf), 1e-9);
  const rows = groups.map((group) => [
    group.name || translate("unnamed"),
    formatNumber(group.inspected),
    formatNumber(group.defective),
    percent(rateOf(group)),
    bar(rateOf(group) / highest),
  ]);
  const titles = [title, translate("Inspected"), translate("Defective"), translate("Rate"), ""];
  fill(table, titles, rows, translate("Nothing was inspected."));
}

/** The periods with their control limits and mean scores; `zone` is that of the plant. */
export function showPeriods(table, periods, zone) {
  const days = new Intl.DateTimeFormat(LOCALE, { dateStyle: "medium", timeZone: zone });
  const known = (value, write) => (value === null ? "–" : write(value));
  const rows = periods.map((period) => [
    days.format(new Date(period.begin)),
    formatNumber(period.inspected),
    formatNumber(period.defective),
    period.inspected ? percent(rateOf(period)) : "–",
    known(period.low, percent),
    known(period.high, percent),
    known(period.log_odds, (value) => formatDecimals(value, 2)),
  ]);
  const titles = [
    translate("From"),
    translate("Inspected"),
    translate("Defective"),
    translate("Rate"),
    translate("Lower limit"),
    translate("Upper limit"),
    translate("Mean log-odds"),
  ];
  fill(table, titles, rows, translate("Nothing was inspected."));
}

function rateOf({ inspected, defective }) {
  return inspected ? defective / inspected : 0;
}

function bar(share) {
  const made = createElement("span", "bar");
  made.style.width = `${Math.round(100 * share)}%`;
  return made;
}

function fill(table, titles, rows, empty) {
  if (!rows.length) return table.replaceChildren(createElement("caption", "", empty));
  const heads = titles.map((title) => Object.assign(createElement("th", "", title), { scope: "col" }));
  const body = rows.map(([name, ...cells]) => {
    const head = Object.assign(createElement("th", "", name), { scope: "row" });
    return createElement("tr", "", head, ...cells.map((cell) => createElement("td", "", cell)));
  });
  table.replaceChildren(createElement("thead", "", createElement("tr", "", ...heads)), createElement("tbody", "", ...body));
}
