// How far the photographs are from those of the training, as multiples of the limit.

import { byId, setText } from "../shared/dom.js";
import { formatDecimals, translate } from "../shared/language.js";
import { stationName } from "./format.js";

const MEASURES = {
  brightness: translate("brightness"),
  colour: translate("colour"),
  sharpness: translate("sharpness"),
  layout: translate("layout"),
  proportions: translate("proportions"),
  texture: translate("texture"),
  surface: translate("surface"),
};

/** Shows the station that is nearest to its limit at the end of the page. */
export function showTrainingDistance([highest]) {
  byId("training").hidden = !highest;
  if (!highest) return;
  setText(byId("training"), translate("Photographs of {station}: {distance}", { station: stationName(highest.station), distance: distanceText(highest) }));
  byId("training").classList.toggle("alert", highest.near_limit); // the notices may not all fit
}

/** Notices about stations that are near their limit and farther from the training than at the start. */
export function trainingNotices(training) {
  const near = training.filter((one) => one.near_limit && isFarther(one));
  return near.map((one) => ["near", stationName(one.station), translate("photographs differ from the training: {distance}", { distance: distanceText(one) })]);
}

function isFarther({ measures: [{ now, start }] }) {
  return start === null || (now > start && formatMultiple(now) !== formatMultiple(start));
}

function distanceText({ measures: [{ measure, now, start }] }) {
  const values = { measure: MEASURES[measure] ?? measure, now: formatMultiple(now) };
  if (start === null) return translate("{measure} {now} of its limit", values);
  return translate("{measure} {now} of its limit, {start} at the start", { ...values, start: formatMultiple(start) });
}

function formatMultiple(value) {
  return formatDecimals(value, value < 0.095 ? 2 : 1);
}
