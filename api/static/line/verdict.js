// The last verdict, as large as there is room.

import { byId } from "../shared/dom.js";
import { formatDuration } from "./clock.js";
import { stationName, part, setText } from "./format.js";

const WORDS = { good: "GOOD", review: "REVIEW", defect: "DEFECT" };
const STALE_AFTER_S = 300;

/** Shows that nothing is known yet. */
export function showWaiting() {
  showVerdict(null);
  setText(byId("word"), "Connecting …");
}

/** Shows the last inspection, or that there is none yet. */
export function showVerdict(last) {
  const verdict = last?.verdict ?? "none";
  byId("verdict").dataset.verdict = verdict;
  setText(byId("word"), last ? WORDS[verdict] : "No inspection yet");
  const named = verdict === "defect" && last.label.toLowerCase() !== "defect";
  setText(byId("label"), named ? last.label : verdict === "review" ? "Look at the part" : "");
  setText(byId("part"), last ? (last.part_id ?? `record ${last.record_id}`) : "");
  setText(byId("station"), last ? stationName(last.station) : "");
}

/** Says how long ago the last inspection was; an old one is no longer in colour. */
export function tickVerdict(last, clock) {
  const age = last ? clock.since(last.inspected_at) : 0;
  setText(byId("age"), last ? `${formatDuration(age)} ago` : "");
  byId("verdict").classList.toggle("old", age > STALE_AFTER_S);
}
