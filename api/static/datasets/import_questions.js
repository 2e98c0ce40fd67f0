// The questions of an import: what its labels mean, and when its annotations were drawn.

import { createElement } from "../shared/dom.js";
import { translate } from "../shared/language.js";

const MEANINGS = { good_labels: translate("Means good"), defect_labels: translate("Is a defect") };

/** A form with the questions of an import; sending it calls `onAnswer(answers)`. */
export function makeQuestions({ id, result }, onAnswer) {
  const questions = result.unclear_labels.map((label, number) => labelQuestion(label, `import-${id}-${number}`));
  if (result.unclear_rotation) questions.push(rotationQuestion());
  const send = createElement("button", "", translate("Import again"));
  const hint = createElement("p", "hint", translate("The file need not be sent again. Labels that people gave stay."));
  const form = createElement("form", "questions", ...questions, hint, send);
  form.dataset.needs = "engineer";
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    send.disabled = true;
    await onAnswer(answersOf(form, result));
    send.disabled = false;
  });
  return form;
}

function labelQuestion(label, name) {
  const shown = createElement("strong", "", label);
  shown.translate = false;
  const choices = Object.entries(MEANINGS).map(([meaning, text]) => {
    const choice = createElement("input", "");
    Object.assign(choice, { type: "radio", name, value: meaning, required: true });
    choice.dataset.label = label;
    return createElement("label", "check", choice, text);
  });
  return createElement("fieldset", "", createElement("legend", "", shown), ...choices);
}

function rotationQuestion() {
  const choice = createElement("input", "");
  Object.assign(choice, { type: "checkbox", name: "rotation" });
  const text = translate("The masks and annotations were drawn on photographs without their EXIF rotation");
  return createElement("label", "check", choice, text);
}

function answersOf(form, { unclear_rotation: asksRotation }) {
  const labelsOf = (meaning) => [...form.querySelectorAll(`[value=${meaning}]:checked`)].map((choice) => choice.dataset.label);
  const answers = Object.fromEntries(Object.keys(MEANINGS).map((meaning) => [meaning, labelsOf(meaning)]));
  return asksRotation ? { ...answers, annotations_before_rotation: form.elements.rotation.checked } : answers;
}
