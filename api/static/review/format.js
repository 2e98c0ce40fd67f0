// What the page says of a task and of verdicts.

const REASONS = {
  candidate_differs: ["Models disagree", "A candidate says otherwise than the model in service."],
  chance: ["By chance", "One of the few called good that people look at, to know what slips through."],
  doubtful: ["In doubt", "The score lies near the threshold, or between the two."],
  defect: ["Called defective", "The model calls it defective."],
  asked: ["Asked for", "Somebody wants it to be looked at."],
};

const moments = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "medium" });

/** Why a task is put up: [title, sentence]. */
export function reasonText(why) {
  return REASONS[why] ?? [why, ""];
}

/** A verdict in words. */
export function verdictText(label) {
  return { good: "Good", review: "Review", unsure: "Unsure" }[label] ?? label;
}

/** Which colours a verdict has: good, review or defect. */
export function verdictKind(label) {
  return { good: "good", review: "review", unsure: "review" }[label] ?? "defect";
}

export function scoreText(score) {
  return score > 0 && score < 0.001 ? "< 0.001" : score > 0.999 && score < 1 ? "> 0.999" : score.toFixed(3);
}

/** The limits of a decision in words. */
export function thresholdText({ threshold, review_threshold: review }) {
  const from = review === null || review === undefined ? "" : `review from ${scoreText(review)}, `;
  return `${from}defect from ${scoreText(threshold)}`;
}

/** When something was, in the reader's zone. */
export function timeText(moment) {
  return moments.format(new Date(moment));
}

/** What a part is called. */
export function partName({ part_id: part, record_id: id }) {
  return part ?? `Record ${id}`;
}

/** A task in one sentence, to be read out. */
export function taskText({ record, why }) {
  const { label, score } = record.answer.decision;
  const station = record.station ? `, station ${record.station}` : "";
  return `${partName(record)}${station}. The model says ${verdictText(label)}, score ${scoreText(score)}. ${reasonText(why)[0]}.`;
}
