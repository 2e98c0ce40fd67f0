// Times in the time zone of the plant, which the service writes into its pages.

import { LOCALE } from "./language.js";
import { repeatedOffset, zoneOffset } from "./time_zone.js";

/** The plant's time zone; that of the browser if the service keeps no record. */
export const ZONE = document.getElementById("zone")?.dataset.zone ?? Intl.DateTimeFormat().resolvedOptions().timeZone;

const offsetAt = zoneOffset(ZONE);
const offsetText = repeatedOffset(ZONE);
const moments = new Intl.DateTimeFormat(LOCALE, { dateStyle: "medium", timeStyle: "medium", timeZone: ZONE });

/** A time in the plant's time zone. */
export function timeText(moment) {
  return moments.format(new Date(moment)) + offsetText(moment);
}

/** The same with the name of the zone, for a text that is read elsewhere. */
export function timeTextWithZone(moment) {
  return `${timeText(moment)} (${ZONE})`;
}

/** The moment of a date and time at the plant, the value of a field, as ISO 8601; null if there is none. */
export function momentOf(localTime) {
  const asUtc = Date.parse(`${localTime}Z`);
  if (Number.isNaN(asUtc)) return null;
  const guess = asUtc - offsetAt(asUtc); // wrong only if the clock is changed between the two
  return new Date(asUtc - offsetAt(guess)).toISOString();
}

/** The moment at which the present day began at the plant, as ISO 8601. */
export function beginOfToday() {
  const now = Date.now();
  return momentOf(`${new Date(now + offsetAt(now)).toISOString().slice(0, 10)}T00:00`);
}
