// Texts about tasks and verdicts.

const NOT_INSPECTED = "not_inspected";

const REASONS = {
  candidate_differs: ["Models disagree", "A candidate model and the model in service differ."],
  chance: ["Random sample", "A random part predicted good, to estimate missed defects."],
  doubtful: ["Uncertain", "The score is near the threshold or between the thresholds."],
  defect: ["Predicted defective", "The model predicts a defect."],
  asked: ["Requested", "A person requested a review."],
  not_inspected: ["Not inspected", "The photograph is unlike those of the training."],
};

const moments = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "medium" });

/** Why a task needs a review: [title, sentence]. */
export function reasonText(why) {
  return REASONS[why] ?? [why, ""];
}

/** The text of a verdict. */
export function verdictText(label) {
  return { good: "Good", review: "Review", unsure: "Unsure", [NOT_INSPECTED]: "Not inspected" }[label] ?? label;
}

/** The text of a reviewer's verdict: a photograph that was not inspected is dismissed instead of unsure. */
export function reviewText(label, { refusal }) {
  return label === "unsure" && refusal ? "Dismiss" : verdictText(label);
}

/** The label of the model in service. */
export function servingLabel({ answer }) {
  return answer?.decision.label ?? NOT_INSPECTED;
}

/** The colour scheme of a verdict: good, review, defect or missed. */
export function verdictKind(label) {
  return { good: "good", review: "review", unsure: "review", [NOT_INSPECTED]: "missed" }[label] ?? "defect";
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
  const { answer, refusal } = record;
  const station = record.station ? `, station ${record.station}` : "";
  if (refusal) return `${partName(record)}${station}. Not inspected. ${refusal.detail}`;
  const { label, score } = answer.decision;
  return `${partName(record)}${station}. The model predicts ${verdictText(label)}, score ${scoreText(score)}. ${reasonText(why)[0]}.`;
}
