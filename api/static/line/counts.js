// Counts of the current shift and day.

import { byId, setText } from "../shared/dom.js";
import { translate, translateCount } from "../shared/language.js";
import { formatCount } from "./format.js";

const ROWS = {
  inspected: (counts) => counts.inspected,
  good: (counts) => counts.good,
  review: (counts) => counts.review,
  defective: (counts) => sum(counts.defective),
  uninspected: (counts) => counts.not_inspected,
};
const MAX_CLASSES = 4;
const DAY_SIZE = 0.65; // of a count of the day, relative to that of the shift

const sum = (numbers) => Object.values(numbers).reduce((total, number) => total + number, 0);

/** Shows the counts of shift and day; null = unknown. */
export function showCounts(shift, day, clock) {
  for (const [name, read] of Object.entries(ROWS)) {
    const row = document.querySelector(`[data-count="${name}"]`);
    [shift, day].forEach((counts, column) => setText(row.cells[column + 1], counts ? formatCount(read(counts)) : "–"));
    row.classList.toggle("some", Boolean(shift && read(shift)));
  }
  byId("counts").style.setProperty("--characters", longest(1) + DAY_SIZE * longest(2));
  setText(byId("shift-begin"), shift ? translate("since {time}", { time: clock.time(shift.begin) }) : "");
  setText(byId("classes"), shift ? classes(shift.defective) : "");
}

/** The number of characters of the longest text in a column. */
function longest(column) {
  return Math.max(...Object.keys(ROWS).map((name) => document.querySelector(`[data-count="${name}"]`).cells[column].textContent.length));
}

/** The defect classes of the shift, most frequent first. */
function classes(defective) {
  const sorted = Object.entries(defective).sort((a, b) => b[1] - a[1]);
  const shown = sorted.slice(0, MAX_CLASSES).map(([name, number]) => `${name} ${formatCount(number)}`);
  const more = sorted.length - shown.length;
  return [...shown, ...(more > 0 ? [translateCount(more, "{count} more class", "{count} more classes")] : [])].join(" · ");
}
