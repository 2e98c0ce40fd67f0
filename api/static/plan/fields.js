// Fields of forms, made for one value. Each has an id, by which the focus returns to it when the form is made again.

import { createElement } from "../shared/dom.js";

/**
 * A number field; `onChange(number)` is called for valid numbers, with null if it is empty and not required, and may return a
 * problem. `name` is for screen readers.
 */
export function numberField(id, name, value, onChange, { min = 0, max = null, step = "any", isRequired = true } = {}) {
  const input = createElement("input", "");
  Object.assign(input, { id, type: "number", min, step, value: value ?? "", required: isRequired });
  if (max !== null) input.max = max;
  input.setAttribute("aria-label", name);
  input.addEventListener("input", () => input.setCustomValidity(""));
  input.addEventListener("change", () => {
    if (!input.reportValidity()) return;
    input.setCustomValidity(onChange(input.value === "" ? null : input.valueAsNumber) ?? "");
    input.reportValidity();
  });
  return input;
}

/** A choice of `options` [[value, text]]; calls `onChange(value)`. */
export function choiceField(id, name, options, value, onChange) {
  const select = createElement("select", "");
  select.id = id;
  select.setAttribute("aria-label", name);
  select.append(...options.map(([given, text]) => Object.assign(createElement("option", "", text), { value: given })));
  select.value = value;
  select.addEventListener("change", () => onChange(select.value));
  return select;
}

/** A text field; calls `onChange(text)` if `check(text)` returns no problem. */
export function textField(id, name, value, onChange, check = () => "") {
  const input = createElement("input", "");
  Object.assign(input, { id, type: "text", value, maxLength: 64, autocomplete: "off", required: true, pattern: ".*\\S.*" });
  input.setAttribute("aria-label", name);
  input.addEventListener("input", () => input.setCustomValidity(""));
  input.addEventListener("change", () => {
    input.setCustomValidity(check(input.value.trim()));
    if (input.reportValidity()) onChange(input.value.trim());
  });
  return input;
}

/** A box to tick with its text; calls `onChange(isTicked)`. */
export function tickField(id, text, value, onChange) {
  const input = createElement("input", "");
  Object.assign(input, { id, type: "checkbox", checked: value });
  input.addEventListener("change", () => onChange(input.checked));
  return createElement("label", "tick", input, text);
}

/** A field below its label. */
export function labelled(text, field) {
  return createElement("label", "field", text, field);
}

/** A button; `id` as of fields. */
export function button(id, text, onClick, className = "") {
  const made = createElement("button", className, text);
  Object.assign(made, { id, type: "button" });
  made.addEventListener("click", onClick);
  return made;
}

/** Replaces the content of an element, and returns the focus to the field with the same id. */
export function replaceForm(element, ...children) {
  const { id } = document.activeElement ?? {};
  const hadFocus = element.contains(document.activeElement);
  element.replaceChildren(...children);
  if (hadFocus && id) document.getElementById(id)?.focus();
}
