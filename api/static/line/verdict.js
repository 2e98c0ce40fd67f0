// The last verdict.

import { byId, setText } from "../shared/dom.js";
import { translate } from "../shared/language.js";
import { formatDuration } from "./clock.js";
import { partName } from "../shared/record_text.js";
import { stationName } from "./format.js";

const TITLES = { good: translate("GOOD"), review: translate("REVIEW"), defect: translate("DEFECT") };
const STALE_AFTER_S = 300;

/** Shows that there is no response yet. */
export function showWaiting() {
  showVerdict(null);
  setText(byId("word"), translate("Connecting …"));
}

/** Shows the last inspection; null = none. */
export function showVerdict(last) {
  const verdict = last?.verdict ?? "none";
  byId("verdict").dataset.verdict = verdict;
  setText(byId("word"), last ? TITLES[verdict] : translate("No inspection yet"));
  const named = verdict === "defect" && last.label.toLowerCase() !== "defect";
  setText(byId("label"), named ? last.label : verdict === "review" ? translate("Check the part") : "");
  setText(byId("part"), last ? partName(last) : "");
  setText(byId("station"), last ? stationName(last.station) : "");
}

/** Shows the age of the last inspection; an old one loses its colour. */
export function tickVerdict(last, clock) {
  const age = last ? clock.since(last.inspected_at) : 0;
  setText(byId("age"), last ? translate("{duration} ago", { duration: formatDuration(age) }) : "");
  byId("verdict").classList.toggle("old", age > STALE_AFTER_S);
}
