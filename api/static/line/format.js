// What stands on the page is changed only where it differs: a screen runs for months.

/** Writes `words` into an element. */
export function setText(element, words) {
  if (element.textContent !== words) element.textContent = words;
}

/** The name of a station, also of those that have none. */
export function stationName(station) {
  return station || "no station named";
}

/** An element with what it holds. */
export function make(name, className, ...content) {
  const made = document.createElement(name);
  if (className) made.className = className;
  made.append(...content);
  return made;
}

const whole = new Intl.NumberFormat("en");

/** A count, as 12,345. */
export function formatCount(number) {
  return whole.format(number);
}

/** A share in percent, with as many digits as tell something. */
export function formatPercent(share) {
  const value = 100 * share;
  return `${value >= 10 || value === 0 ? value.toFixed(0) : value.toFixed(value >= 1 ? 1 : 2)} %`;
}

/** A number with one digit behind the point and the sign of printers. */
export function formatSigned(number) {
  return number.toFixed(1).replace(/^-0\.0$/, "0.0").replace("-", "−");
}
