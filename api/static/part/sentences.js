// What the page of a part says about a record.

import { translate } from "../shared/language.js";
import { timeText, timeTextWithZone } from "../shared/plant_time.js";
import { planVerdictText } from "../shared/plan_text.js";
import { isUnlikeTraining, scoreText, verdictText } from "../shared/record_text.js";

/** Score and thresholds. */
export function scoreSentence({ answer, refusal }) {
  if (refusal) return refusal.detail;
  const { score, threshold, review_threshold: review } = answer.decision;
  const values = { score: scoreText(score), threshold: scoreText(threshold) };
  if (review === null || review === undefined) return translate("Score {score}; defective from {threshold}.", values);
  values.review = scoreText(review);
  return translate("Score {score}; for review from {review}, defective from {threshold}.", values);
}

/** Why verdict and mask seem to differ; "" if they do not. */
export function explanationText({ answer, has_heat_map: hasHeatMap }) {
  if (!answer) return "";
  if (answer.plan) return planVerdictText(answer.plan);
  if (isUnlikeTraining(answer.decision)) return translate("The photograph is unlike those of the training: review instead of good.");
  const { label } = answer.decision;
  const regions = answer.regions.length;
  if (label === "good" && regions) return translate("The mask marks a region, but the score of the whole photograph is below the threshold.");
  if (label === "good" || regions) return "";
  const text = translate("No region reaches the threshold of the mask; the verdict is that of the whole photograph.");
  return hasHeatMap ? `${text} ${translate("The heat map shows where the network responded.")}` : text;
}

/** The review as a sentence. */
export function reviewText(review) {
  if (!review) return translate("Not reviewed.");
  const { label, reason, reviewer, reviewed_at: at } = review;
  const name = reviewer || translate("an unknown person");
  const sentences = [
    translate("{verdict}, by {name}, {time}.", { verdict: verdictText(label), name, time: timeText(at) }),
    review.corrected_mask ? translate("The mask was corrected.") : "",
    reason ? translate("Reason: {reason}", { reason }) : "",
  ];
  return sentences.filter(Boolean).join(" ");
}

/** A message to another system as a sentence. */
export function messageText({ sink, kind, state, delivered_at: at, error }) {
  const values = { sink, time: at && timeText(at), error: error ?? "" };
  const subject = kind === "reviewed" ? translate("Review") : translate("Verdict");
  if (state === "delivered") return `${subject}: ${translate("delivered to {sink}, {time}.", values)}`;
  if (state === "dead") return `${subject}: ${translate("not delivered to {sink} and given up. {error}", values)}`;
  return `${subject}: ${translate("waits for {sink}. {error}", values)}`;
}

/** Names and values of the other facts. */
export function factsOf({ answer, refusal, ...record }) {
  const { model, image } = answer ?? refusal;
  const metadata = Object.entries(record.metadata).map(([key, value]) => [key, typeof value === "string" ? value : JSON.stringify(value)]);
  return [
    [translate("Inspected"), timeTextWithZone(record.inspected_at)],
    [translate("Station"), record.station || "–"],
    [translate("Part"), record.part_id ?? "–"],
    ...metadata,
    [translate("Model"), `${model.name} ${model.version}`],
    ...planFacts(answer),
    [translate("Engine"), record.engine || "–"],
    [translate("API key"), record.client || "–"],
    [translate("Photograph"), `${image.width} × ${image.height} px, ${image.format.toUpperCase()}`],
    [translate("Record"), String(record.record_id)],
  ];
}

function planFacts(answer) {
  if (!answer?.plan) return [];
  const { name, version } = answer.plan;
  return [
    [translate("Inspection plan"), `${name} ${version}`],
    [translate("Label of the model"), verdictText(answer.decision.model_label)],
  ];
}

/** Who deleted a photograph, and when; null if it was not deleted or nothing is known about it. */
export function deletionText({ state, deleted_at: at, deleted_by: name }) {
  if (state === "lost" || !at) return null;
  return name
    ? translate("{name} deleted the photograph on {time}.", { name, time: timeText(at) })
    : translate("The retention rules deleted the photograph on {time}.", { time: timeText(at) });
}
