// The text about what a model proposes for a photograph.

import { formatDecimals, translate } from "../shared/language.js";

const REASONS = {
  uncertain: translate("The model is uncertain."),
  unlike_training: translate("The photograph is unlike those of the training."),
  different: translate("The model is sure. The photograph differs from those labelled so far."),
};

/** The text of a proposal {label, score, model, version, reason}. */
export function proposalText({ label, score, model, version, reason }) {
  const name = `${model} ${version}`;
  if (label === null) return translate("{model} proposes nothing: the photograph is unlike those of the training.", { model: name });
  const proposed = translate("Proposed by {model}: {label}, score {score}.", {
    model: name,
    label: label === "good" ? translate("good") : label,
    score: formatDecimals(score, 2),
  });
  return [proposed, REASONS[reason]].filter(Boolean).join(" ");
}
