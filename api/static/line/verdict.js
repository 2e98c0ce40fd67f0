// The last verdict, as large as there is room.

import { duration } from "./times.js";
import { nameOf, part, write } from "./words.js";

const WORDS = { good: "GOOD", review: "REVIEW", defect: "DEFECT" };
const FADES_S = 300;

/** Shows that nothing is known yet. */
export function showWaiting() {
  showVerdict(null);
  write(part("word"), "Connecting …");
}

/** Shows the last inspection, or that there is none yet. */
export function showVerdict(last) {
  const verdict = last?.verdict ?? "none";
  part("verdict").dataset.verdict = verdict;
  write(part("word"), last ? WORDS[verdict] : "No inspection yet");
  const named = verdict === "defect" && last.label.toLowerCase() !== "defect";
  write(part("label"), named ? last.label : verdict === "review" ? "Look at the part" : "");
  write(part("part"), last ? (last.part_id ?? `record ${last.record_id}`) : "");
  write(part("station"), last ? nameOf(last.station) : "");
}

/** Says how long ago the last inspection was; an old one is no longer in colour. */
export function tickVerdict(last, clock) {
  const age = last ? clock.since(last.inspected_at) : 0;
  write(part("age"), last ? `${duration(age)} ago` : "");
  part("verdict").classList.toggle("old", age > FADES_S);
}
