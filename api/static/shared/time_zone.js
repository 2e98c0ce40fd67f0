// Offsets of a time zone from UTC.

import { LOCALE } from "./language.js";

const CHANGE_MS = 3 * 3_600_000; // more than clocks are changed by

/** Returns a function from a moment, ms, to how far the clocks of a time zone are ahead of UTC, ms. */
export function zoneOffset(timeZone) {
  const local = new Intl.DateTimeFormat("sv", { dateStyle: "short", timeStyle: "medium", timeZone }); // ISO 8601
  return (moment) => Date.parse(`${local.format(moment).replace(" ", "T")}Z`) - Math.floor(moment / 1000) * 1000;
}

/** Returns a function from a time to " GMT+02:00" if it occurs twice in a time zone, as clocks go back, else "". */
export function repeatedOffset(timeZone) {
  const offsetAt = zoneOffset(timeZone);
  const named = new Intl.DateTimeFormat(LOCALE, { timeZoneName: "longOffset", timeZone });
  return (time) => {
    const moment = new Date(time).getTime();
    const offset = offsetAt(moment);
    const others = [offsetAt(moment - CHANGE_MS), offsetAt(moment + CHANGE_MS)].filter((other) => other !== offset);
    if (!others.some((other) => offsetAt(moment + offset - other) === other)) return "";
    return ` ${named.formatToParts(moment).find(({ type }) => type === "timeZoneName").value}`;
  };
}
