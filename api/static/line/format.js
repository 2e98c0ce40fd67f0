// Formatting of names and numbers.

import { formatDecimals, formatNumber, translate } from "../shared/language.js";

/** The name of a station, or a text if it has none. */
export function stationName(station) {
  return station || translate("unnamed station");
}

/** A count, as 12,345. */
export function formatCount(number) {
  return formatNumber(number);
}

/** A share in percent with two or three significant digits. */
export function formatPercent(share) {
  const value = 100 * share;
  const places = value >= 10 || value === 0 ? 0 : value >= 1 ? 1 : 2;
  return `${formatDecimals(value, places)} %`;
}

/** A number with one decimal and a typographic minus sign. */
export function formatSigned(number) {
  const rounded = Math.round(10 * number) / 10 || 0; // 0 without a sign
  return formatDecimals(rounded, 1).replace("-", "−");
}
