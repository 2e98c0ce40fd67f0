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
export function reasonWords(why) {
  return REASONS[why] ?? [why, ""];
}

/** A verdict in words. */
export function verdictWords(label) {
  return { good: "Good", review: "Review", unsure: "Unsure" }[label] ?? label;
}

/** Which colours a verdict has: good, review or defect. */
export function kindOf(label) {
  return { good: "good", review: "review", unsure: "review" }[label] ?? "defect";
}

export function scoreWords(score) {
  return score > 0 && score < 0.001 ? "< 0.001" : score > 0.999 && score < 1 ? "> 0.999" : score.toFixed(3);
}

/** The limits of a decision in words. */
export function limitWords({ threshold, review_threshold: review }) {
  const from = review === null || review === undefined ? "" : `review from ${scoreWords(review)}, `;
  return `${from}defect from ${scoreWords(threshold)}`;
}

/** When something was, in the reader's zone. */
export function momentWords(moment) {
  return moments.format(new Date(moment));
}

/** What a part is called. */
export function partWords({ part_id: part, record_id: id }) {
  return part ?? `Record ${id}`;
}

/** A task in one sentence, to be read out. */
export function taskWords({ record, why }) {
  const { label, score } = record.answer.decision;
  const station = record.station ? `, station ${record.station}` : "";
  return `${partWords(record)}${station}. The model says ${verdictWords(label)}, score ${scoreWords(score)}. ${reasonWords(why)[0]}.`;
}
