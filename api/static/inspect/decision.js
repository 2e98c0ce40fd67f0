// The decision at the model's threshold or at the user's.

import { formatDecimals, formatNumber, translate } from "../shared/language.js";

/**
 * The effective limits {threshold, review, moved}: at the user's `threshold`, or at the model's if it is null.
 *
 * `review` is null if there is no review band. A user's threshold disables the band, as it does in the service.
 */
export function limitsAt(decision, threshold) {
  const limit = threshold ?? decision.threshold;
  const moved = limit !== decision.threshold;
  return { threshold: limit, review: moved ? null : (decision.review_threshold ?? null), moved };
}

/**
 * {verdict, label, moved} of an answer's decision at a threshold; `verdict` is good, review or defect.
 *
 * An inspection plan decides at the model's threshold only.
 */
export function decideAt(decision, threshold) {
  const limits = limitsAt(decision, threshold);
  const { moved } = limits;
  const good = goodClassName(decision);
  if (decision.plan && !moved) {
    const { label } = decision;
    return { verdict: { [good]: "good", review: "review" }[label] ?? "defect", label, moved };
  }
  if (decision.score >= limits.threshold) {
    const defects = Object.entries(decision.probabilities).filter(([name]) => name !== good);
    return { verdict: "defect", label: defects.reduce((best, next) => (next[1] > best[1] ? next : best))[0], moved };
  }
  const doubtful = limits.review !== null && decision.score >= limits.review;
  if (doubtful || decision.unlike_training) return { verdict: "review", label: "review", moved };
  return { verdict: "good", label: good, moved };
}

/** The text of a decision: Good, Review, Defect, or Defect: scratch. */
export function decisionText({ verdict, label }) {
  if (verdict === "good") return translate("Good");
  if (verdict === "review") return translate("Review");
  return label.toLowerCase() === "defect" ? translate("Defect") : translate("Defect: {label}", { label });
}

/** The text of a decision outside its panel; it marks decisions at the user's threshold. */
export function markedDecisionText(decided) {
  const decision = decisionText(decided);
  return decided.moved ? translate("{decision}, at your threshold", { decision }) : decision;
}

/** Scores with enough decimals to distinguish different ones. */
export function distinctDecimals(...scores) {
  for (let places = 3; places < 7; places++) {
    const texts = scores.map((score) => formatDecimals(score, places));
    if (new Set(texts).size === new Set(scores).size) return texts;
  }
  return scores.map((score) => formatNumber(score, { maximumFractionDigits: 20 }));
}

/** The good class: the label of a good part, else the class whose probability is 1 − score. */
function goodClassName({ label: verdict, model_label: byModel, score, threshold, unlike_training: unlike, review_threshold: review, probabilities }) {
  const label = byModel ?? verdict;
  if (score < (review ?? threshold) && !unlike) return label;
  const distance = (name) => Math.abs(1 - score - probabilities[name]);
  const others = Object.keys(probabilities).filter((name) => name !== label);
  return others.reduce((best, next) => (distance(next) < distance(best) ? next : best));
}
