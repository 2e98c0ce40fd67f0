// How far the photographs are from those of the training, as multiples of the limit.

import { byId, setText } from "../shared/dom.js";
import { stationName } from "./format.js";

/** Shows the station that is nearest to its limit at the end of the page. */
export function showTrainingDistance([highest]) {
  byId("training").hidden = !highest;
  if (!highest) return;
  setText(byId("training"), `Photographs of ${stationName(highest.station)}: ${distanceText(highest)}`);
  byId("training").classList.toggle("alert", highest.near_limit); // the notices may not all fit
}

/** Notices about stations that are near their limit. */
export function trainingNotices(training) {
  const near = training.filter((one) => one.near_limit);
  return near.map((one) => ["near", stationName(one.station), `photographs differ from the training: ${distanceText(one)}`]);
}

function distanceText({ measures: [{ measure, now, start }] }) {
  return `${measure} ${formatMultiple(now)} of its limit${start === null ? "" : `, ${formatMultiple(start)} at the start`}`;
}

function formatMultiple(value) {
  return value.toFixed(value < 0.095 ? 2 : 1);
}
