// What a plan says about the whole photograph: name, size, scale, rules of the whole part, defects in no zone.

import { byId, createElement } from "../shared/dom.js";
import { formatNumber, translate } from "../shared/language.js";
import { button, choiceField, labelled, numberField, replaceForm, textField } from "./fields.js";
import { mmPerPx, withScale } from "./plan_changes.js";
import { consequences, fixedRuleItem, newRule, ruleItems } from "./rule_fields.js";

/**
 * Shows name and scale of a plan; calls `onChange(change)` with a function from the present plan to another, and
 * `onMeasure()` to mark a known distance.
 */
export function showGeneral(plan, { onChange, onMeasure }) {
  const name = textField("plan-name", translate("Name of the plan"), plan.name, (text) => onChange((present) => ({ ...present, name: text })));
  replaceForm(byId("general"), labelled(translate("Name"), name), ...scaleFields(plan, onChange, onMeasure));
}

/** Shows the rules of the whole part, for a model; `onChange` as of `showGeneral`. */
export function showWholePart(plan, model, onChange) {
  const rules = plan.part?.rules ?? [];
  const setRules = (change) => onChange((present) => ({ ...present, part: { rules: change(present.part?.rules ?? []) } }));
  const otherwise = (field, then) => onChange((present) => ({ ...present, otherwise: { ...present.otherwise, [field]: then } }));
  const { outside_zones: outside = "review", unexplained = "reject" } = plan.otherwise ?? {};
  const rows = [
    ["outside_zones", translate("A defect in no zone"), consequences(), outside],
    ["unexplained", translate("Defective by its score, but without a defect in the mask"), consequences("accept", "note"), unexplained],
  ];
  const items = rows.map(([field, text, options, value]) => {
    return fixedRuleItem(text, choiceField(`plan-${field}`, text, options, value, (then) => otherwise(field, then)));
  });
  const add = button("part-new-rule", translate("New rule"), () => setRules((present) => [...present, newRule(plan, true)]));
  const ruleList = ruleItems("part", rules, { plan, model, isForPart: true, onChange: setRules });
  replaceForm(byId("whole-part"), createElement("ol", "rules", ...ruleList, ...items), add);
}

function scaleFields(plan, onChange, onMeasure) {
  const { width, height, known_distance: known, perspective } = plan.photograph;
  const size = `${width} × ${height} px`;
  if (perspective) return [createElement("p", "hint", `${size}. ${translate("Its scale is that of a board in perspective.")}`)];
  const scale = mmPerPx(plan);
  const setScale = (number) => onChange((present) => withScale(present, number > 0 ? { mm_per_px: Number(number.toPrecision(6)) } : {}));
  const number = numberField("plan-scale", translate("mm per px"), scale && Number(scale.toPrecision(6)), setScale, { isRequired: false });
  const sides = scale && [width, height].map((side) => formatNumber(side * scale, { maximumSignificantDigits: 3 })).join(" × ");
  const text = scale ? translate("{size}, {sides} mm", { size, sides }) : translate("{size}, without a scale: limits are in px", { size });
  const origin = known ? ` ${translate("Measured: {mm} mm between two points.", { mm: formatNumber(known.mm) })}` : "";
  return [
    createElement("div", "scale", labelled(translate("mm per px"), number), button("measure", translate("Measure a known distance"), onMeasure)),
    createElement("p", "hint", `${text}.${origin}`),
  ];
}
