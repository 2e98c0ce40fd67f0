// Texts about review tasks.

import { translate } from "../shared/language.js";
import { partName, scoreText, verdictText } from "../shared/record_text.js";

const REASONS = {
  candidate_differs: [translate("Models disagree"), translate("A candidate model and the model in service differ.")],
  chance: [translate("Random sample"), translate("A random part predicted good, to estimate missed defects.")],
  doubtful: [translate("Uncertain"), translate("The score is near the threshold or between the thresholds, or the photograph is unlike those of the training.")],
  defect: [translate("Predicted defective"), translate("The model predicts a defect.")],
  asked: [translate("Requested"), translate("A person requested a review.")],
  not_inspected: [translate("Not inspected"), translate("The photograph is unlike those of the training.")],
};

const UNLIKE = [translate("Unlike the training"), translate("The photograph is unlike those of the training: review instead of good.")];

/** Why a task needs a review: [title, sentence]. A photograph unlike the training is never good, whatever its score. */
export function reasonText({ why, record }) {
  if (why === "doubtful" && record.answer?.plan) return [translate("Inspection plan"), translate("The plan leaves the verdict to a person.")];
  return why === "doubtful" && record.unlike_training ? UNLIKE : (REASONS[why] ?? [why, ""]);
}

/** The text of a reviewer's verdict: a photograph that was not inspected is dismissed instead of unsure. */
export function reviewText(label, { refusal }) {
  return label === "unsure" && refusal ? translate("Dismiss") : verdictText(label);
}

/** A task as text for screen readers. */
export function taskText(task) {
  const { record } = task;
  const { answer, refusal } = record;
  const station = record.station ? `, ${translate("station {station}", { station: record.station })}` : "";
  const part = `${partName(record)}${station}`;
  if (refusal) return `${part}. ${translate("Not inspected")}. ${refusal.detail}`;
  const { label, score } = answer.decision;
  const values = { verdict: verdictText(label), score: scoreText(score) };
  return `${part}. ${translate("The model predicts {verdict}, score {score}.", values)} ${reasonText(task)[0]}.`;
}
