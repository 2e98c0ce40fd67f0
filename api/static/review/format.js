// Texts about tasks and verdicts.

const REASONS = {
  candidate_differs: ["Models disagree", "A candidate model and the model in service differ."],
  chance: ["Random sample", "A random part predicted good, to estimate missed defects."],
  doubtful: ["Uncertain", "The score is near the threshold or between the thresholds."],
  defect: ["Predicted defective", "The model predicts a defect."],
  asked: ["Requested", "A person requested a review."],
};

const moments = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "medium" });

/** Why a task needs a review: [title, sentence]. */
export function reasonText(why) {
  return REASONS[why] ?? [why, ""];
}

/** The text of a verdict. */
export function verdictText(label) {
  return { good: "Good", review: "Review", unsure: "Unsure" }[label] ?? label;
}

/** The colour scheme of a verdict: good, review or defect. */
export function verdictKind(label) {
  return { good: "good", review: "review", unsure: "review" }[label] ?? "defect";
}

export function scoreText(score) {
  return score > 0 && score < 0.001 ? "< 0.001" : score > 0.999 && score < 1 ? "> 0.999" : score.toFixed(3);
}

/** The thresholds of a decision as text. */
export function thresholdText({ threshold, review_threshold: review }) {
  const from = review === null || review === undefined ? "" : `review from ${scoreText(review)}, `;
  return `${from}defect from ${scoreText(threshold)}`;
}

/** A time in the user's time zone. */
export function timeText(moment) {
  return moments.format(new Date(moment));
}

/** The name of a part. */
export function partName({ part_id: part, record_id: id }) {
  return part ?? `Record ${id}`;
}

/** A task as text for screen readers. */
export function taskText({ record, why }) {
  const { label, score } = record.answer.decision;
  const station = record.station ? `, station ${record.station}` : "";
  return `${partName(record)}${station}. The model predicts ${verdictText(label)}, score ${scoreText(score)}. ${reasonText(why)[0]}.`;
}
