// The form that changes the thresholds of a version.

import { createElement, setText } from "../shared/dom.js";
import { whoCan } from "../shared/empty_state.js";
import { translate } from "../shared/language.js";
import { limitsText } from "../shared/record_text.js";

/** The form; `apply(title, text, limits)` asks and sets {score, review}, both null for those of the model. */
export function thresholdForm({ version, thresholds, manifest }, apply) {
  const score = numberField("score", thresholds.score, true);
  const review = numberField("review", thresholds.review ?? "", false);
  const problem = createElement("p", "field-problem", "");
  problem.setAttribute("role", "alert");
  const send = createElement("button", "primary", translate("Apply"));
  const form = createElement("form", "thresholds", field(translate("Defect from"), score), field(translate("Review from"), review, translate("empty: no review")));
  form.dataset.needs = "engineer";
  const buttons = createElement("div", "buttons", send);
  if (!thresholds.of_model) buttons.append(restoreButton(version, manifest.thresholds, apply));
  form.append(problem, buttons);
  form.noValidate = true; // the problem names the cause
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const limits = { score: score.valueAsNumber, review: review.value === "" && !review.validity.badInput ? null : review.valueAsNumber };
    const found = findProblem(limits);
    setText(problem, found);
    if (!found) apply(translate("Apply thresholds"), applyText(version, thresholds, limits), limits);
  });
  const summary = createElement("summary", "", translate("Change the thresholds"));
  return createElement("details", "", summary, form, whoCan(translate("Apply thresholds"), "engineer"));
}

/** The text that asks before the thresholds of a version change. */
export function applyText(version, thresholds, limits) {
  const values = { version, limits: limitsText(limits), before: limitsText(thresholds) };
  return translate("Version {version} decides from now on: {limits}. Until now: {before}. The model itself does not change.", values);
}

function restoreButton(version, own, apply) {
  const button = createElement("button", "", translate("Restore those of the model"));
  button.dataset.needs = "engineer";
  button.type = "button";
  button.addEventListener("click", () => {
    const text = translate("Version {version} decides from now on by its own thresholds: {limits}.", { version, limits: limitsText(own) });
    apply(translate("Restore thresholds"), text, { score: null, review: null });
  });
  return button;
}

/** What is wrong with {score, review}; an empty text if nothing is. */
export function findProblem({ score, review }) {
  const isScore = (value) => value > 0 && value < 1;
  if (!isScore(score)) return translate("“Defect from” is not a score: enter a number above 0 and below 1.");
  if (review === null) return "";
  if (!isScore(review)) return translate("“Review from” is not a score: enter a number above 0 and below 1, or nothing.");
  return review < score ? "" : translate("“Review from” must be below “Defect from”.");
}

function field(name, input, hint = "") {
  const label = createElement("label", "", name, input);
  if (hint) label.append(createElement("span", "hint", hint));
  return label;
}

function numberField(name, value, required) {
  const input = createElement("input", "");
  Object.assign(input, { name, type: "number", min: 0, max: 1, step: "any", required, value });
  return input;
}
