// Texts about recorded inspections.

import { formatDecimals, formatNumber, translate } from "./language.js";

export const NOT_INSPECTED = "not_inspected";

const VERDICTS = {
  good: translate("Good"),
  review: translate("Review"),
  unsure: translate("Unsure"),
  [NOT_INSPECTED]: translate("Not inspected"),
};

/** The text of a verdict; the name of a defect class is that of the model. */
export function verdictText(label) {
  return VERDICTS[label] ?? label;
}

/** The colour scheme of a verdict: good, review, defect or uninspected. */
export function verdictKind(label) {
  return { good: "good", review: "review", unsure: "review", [NOT_INSPECTED]: "uninspected" }[label] ?? "defect";
}

export function scoreText(score) {
  if (score > 0 && score < 0.001) return `< ${formatDecimals(0.001, 3)}`;
  return score > 0.999 && score < 1 ? `> ${formatDecimals(0.999, 3)}` : formatDecimals(score, 3);
}

/** The thresholds of a decision as text. */
export function thresholdText({ threshold, review_threshold: review }) {
  const values = { threshold: scoreText(threshold) };
  if (review === null || review === undefined) return translate("defect from {threshold}", values);
  return translate("review from {review}, defect from {threshold}", { ...values, review: scoreText(review) });
}

/** Thresholds that were set, as text with all significant digits: {score, review}. */
export function limitsText({ score, review }) {
  const exact = (value) => formatNumber(value, { maximumSignificantDigits: 6 });
  if (review === null) return translate("defect from {threshold}", { threshold: exact(score) });
  return translate("review from {review}, defect from {threshold}", { review: exact(review), threshold: exact(score) });
}

/** The name of a part. */
export function partName({ part_id: part, record_id: id }) {
  return part ?? translate("Record {id}", { id });
}

/** The label of the model that inspected a record. */
export function servingLabel({ answer }) {
  return answer?.decision.label ?? NOT_INSPECTED;
}

/** Whether the label is review though the score is good: the photograph is unlike those of the training. */
export function isUnlikeTraining({ label, score, threshold, review_threshold: review }) {
  return label === "review" && score < (review ?? threshold);
}

/** A warning about a photograph without the code with which the English ones begin. */
export function warningText(warning) {
  return warning.replace(/^unlike_training: /, "");
}
