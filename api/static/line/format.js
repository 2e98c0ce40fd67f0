// Formatting of names and numbers.

/** The name of a station, or a text if it has none. */
export function stationName(station) {
  return station || "unnamed station";
}

const whole = new Intl.NumberFormat("en");

/** A count, as 12,345. */
export function formatCount(number) {
  return whole.format(number);
}

/** A share in percent with two or three significant digits. */
export function formatPercent(share) {
  const value = 100 * share;
  return `${value >= 10 || value === 0 ? value.toFixed(0) : value.toFixed(value >= 1 ? 1 : 2)} %`;
}

/** A number with one decimal and a typographic minus sign. */
export function formatSigned(number) {
  return number.toFixed(1).replace(/^-0\.0$/, "0.0").replace("-", "−");
}
