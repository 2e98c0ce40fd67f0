// What the page of a part says about a record.

import { scoreText, timeText, verdictText } from "../shared/record_text.js";

/** Score and thresholds. */
export function scoreSentence({ answer, refusal }) {
  if (refusal) return refusal.detail;
  const { score, threshold, review_threshold: review } = answer.decision;
  const from = review === null || review === undefined ? "" : `for review from ${scoreText(review)}, `;
  return `Score ${scoreText(score)}; ${from}defective from ${scoreText(threshold)}.`;
}

/** Why verdict and mask seem to differ; "" if they do not. */
export function explanationText({ answer, has_heat_map: hasHeatMap }) {
  if (!answer) return "";
  const { label } = answer.decision;
  const regions = answer.regions.length;
  if (label === "good" && regions) return "The mask marks a region, but the score of the whole photograph is below the threshold.";
  if (label === "good" || regions) return "";
  const where = hasHeatMap ? " The heat map shows where the network responded." : "";
  return `No region reaches the threshold of the mask; the verdict is that of the whole photograph.${where}`;
}

/** The review as a sentence. */
export function reviewText(review) {
  if (!review) return "Not reviewed.";
  const reason = review.reason ? ` Reason: ${review.reason}` : "";
  const mask = review.corrected_mask ? " The mask was corrected." : "";
  return `${verdictText(review.label)}, by ${review.reviewer || "an unknown person"}, ${timeText(review.reviewed_at)}.${mask}${reason}`;
}

/** Names and values of the other facts. */
export function factsOf({ answer, refusal, ...record }) {
  const { model, image } = answer ?? refusal;
  const metadata = Object.entries(record.metadata).map(([key, value]) => [key, typeof value === "string" ? value : JSON.stringify(value)]);
  return [
    ["Inspected", timeText(record.inspected_at)],
    ["Station", record.station || "–"],
    ["Part", record.part_id ?? "–"],
    ...metadata,
    ["Model", `${model.name} ${model.version}`],
    ["Engine", record.engine || "–"],
    ["API key", record.client || "–"],
    ["Photograph", `${image.width} × ${image.height} px, ${image.format.toUpperCase()}`],
    ["Record", String(record.record_id)],
  ];
}
