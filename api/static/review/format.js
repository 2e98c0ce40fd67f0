// Texts about review tasks.

import { partName, scoreText, verdictText } from "../shared/record_text.js";

const REASONS = {
  candidate_differs: ["Models disagree", "A candidate model and the model in service differ."],
  chance: ["Random sample", "A random part predicted good, to estimate missed defects."],
  doubtful: ["Uncertain", "The score is near the threshold or between the thresholds."],
  defect: ["Predicted defective", "The model predicts a defect."],
  asked: ["Requested", "A person requested a review."],
  not_inspected: ["Not inspected", "The photograph is unlike those of the training."],
};

/** Why a task needs a review: [title, sentence]. */
export function reasonText(why) {
  return REASONS[why] ?? [why, ""];
}

/** The text of a reviewer's verdict: a photograph that was not inspected is dismissed instead of unsure. */
export function reviewText(label, { refusal }) {
  return label === "unsure" && refusal ? "Dismiss" : verdictText(label);
}

/** A task as text for screen readers. */
export function taskText({ record, why }) {
  const { answer, refusal } = record;
  const station = record.station ? `, station ${record.station}` : "";
  if (refusal) return `${partName(record)}${station}. Not inspected. ${refusal.detail}`;
  const { label, score } = answer.decision;
  return `${partName(record)}${station}. The model predicts ${verdictText(label)}, score ${scoreText(score)}. ${reasonText(why)[0]}.`;
}
