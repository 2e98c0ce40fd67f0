// The last verdict.

import { byId, setText } from "../shared/dom.js";
import { formatDuration } from "./clock.js";
import { stationName } from "./format.js";

const TITLES = { good: "GOOD", review: "REVIEW", defect: "DEFECT" };
const STALE_AFTER_S = 300;

/** Shows that there is no response yet. */
export function showWaiting() {
  showVerdict(null);
  setText(byId("word"), "Connecting …");
}

/** Shows the last inspection; null = none. */
export function showVerdict(last) {
  const verdict = last?.verdict ?? "none";
  byId("verdict").dataset.verdict = verdict;
  setText(byId("word"), last ? TITLES[verdict] : "No inspection yet");
  const named = verdict === "defect" && last.label.toLowerCase() !== "defect";
  setText(byId("label"), named ? last.label : verdict === "review" ? "Check the part" : "");
  setText(byId("part"), last ? (last.part_id ?? `record ${last.record_id}`) : "");
  setText(byId("station"), last ? stationName(last.station) : "");
}

/** Shows the age of the last inspection; an old one loses its colour. */
export function tickVerdict(last, clock) {
  const age = last ? clock.since(last.inspected_at) : 0;
  setText(byId("age"), last ? `${formatDuration(age)} ago` : "");
  byId("verdict").classList.toggle("old", age > STALE_AFTER_S);
}
