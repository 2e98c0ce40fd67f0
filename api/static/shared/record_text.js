// Texts about recorded inspections.

export const NOT_INSPECTED = "not_inspected";

const moments = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "medium" });

/** The text of a verdict. */
export function verdictText(label) {
  return { good: "Good", review: "Review", unsure: "Unsure", [NOT_INSPECTED]: "Not inspected" }[label] ?? label;
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

/** Thresholds that were set, as text with all significant digits: {score, review}. */
export function limitsText({ score, review }) {
  const exact = (value) => String(Number(value.toPrecision(6)));
  return `${review === null ? "" : `review from ${exact(review)}, `}defect from ${exact(score)}`;
}

/** A time in the user's time zone. */
export function timeText(moment) {
  return moments.format(new Date(moment));
}

/** The name of a part. */
export function partName({ part_id: part, record_id: id }) {
  return part ?? `Record ${id}`;
}

/** The label of the model that inspected a record. */
export function servingLabel({ answer }) {
  return answer?.decision.label ?? NOT_INSPECTED;
}
