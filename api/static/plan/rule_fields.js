// The rules of a zone or of the whole part, each as a sentence of fields.

import { createElement } from "../shared/dom.js";
import { formatNumber, translate } from "../shared/language.js";
import { CONSEQUENCES } from "../shared/plan_text.js";
import { convertQuantity, hasScale, mmPerPx, quantityText, splitQuantity } from "./plan_changes.js";
import { button, choiceField, numberField } from "./fields.js";

const [LENGTHS, AREAS] = [["mm", "px"], ["mm²", "px²"]];
const ANY = "";
const MEASURING_ERROR_PX = 1; // as the service assumes

/** Limits by their field, with the possible units, the limited size of one defect, and whether they are about several. */
const CONDITIONS = {
  "": { text: translate("of any size") },
  longer_than: { text: translate("longer than"), units: LENGTHS, size: "length" },
  wider_than: { text: translate("wider than"), units: LENGTHS, size: "width" },
  larger_than: { text: translate("larger than"), units: AREAS, size: "area" },
  more_than: { text: translate("more than"), isTotal: true, counts: true },
  total_larger_than: { text: translate("in total larger than"), units: [...AREAS, "%"], isTotal: true },
  closer_than: { text: translate("closer to another than"), units: LENGTHS, isTotal: true, counts: true },
};
const DEFAULT_NUMBERS = { mm: 1, "mm²": 1, px: 10, "px²": 100, "%": 1 };

/** The choices of what follows, without some. */
export function consequences(...without) {
  return Object.entries(CONSEQUENCES).filter(([name]) => !without.includes(name));
}

/** A new rule; `isForPart`: for the whole part. */
export function newRule(plan, isForPart) {
  const unit = hasScale(plan) ? "mm" : "px";
  const counted = quantityText(DEFAULT_NUMBERS[unit], unit);
  return isForPart ? { more_than: 3, counted_from: counted, then: "reject" } : { longer_than: counted, then: "reject" };
}

/**
 * The rules as list items, for a plan and a model; calls `onChange(change)` with a function from the present rules to
 * others. `id` begins the ids of the fields; `isForPart`: rules of the whole part.
 */
export function ruleItems(id, rules, { plan, model, isForPart = false, onChange }) {
  const replace = (at, change) => onChange((present) => present.flatMap((rule, number) => (number === at ? change(rule) : rule)));
  return rules.map((rule, at) => ruleItem(`${id}-rule-${at}`, rule, { plan, model, isForPart, onRule: (change) => replace(at, change) }));
}

/** One rule; `onRule(change)` gets a function to another rule, or to [] to delete it. */
function ruleItem(id, rule, { plan, model, isForPart, onRule }) {
  const condition = conditionOf(rule);
  const { counts } = CONDITIONS[condition];
  const names = Object.entries(CONDITIONS).filter(([name, { isTotal: ofSeveral }]) => !isForPart || (name && ofSeveral));
  const options = names.map(([name, { text }]) => [name, text]);
  const choose = (name) => onRule((present) => withCondition(present, name, plan));
  const parts = [
    ...defectFields(id, rule, classesOf(model), onRule),
    choiceField(`${id}-condition`, translate("Limit"), options, condition, choose),
    ...limitFields(id, rule, condition, plan, isForPart, onRule),
    ...(counts ? countedFields(id, rule, plan, onRule) : []),
    createElement("span", "", "→"),
    choiceField(`${id}-then`, translate("Consequence"), consequences(...(condition ? ["accept"] : [])), rule.then, (then) => onRule((present) => ({ ...present, then }))),
    button(`${id}-delete`, "×", ({ detail }) => detail < 2 && onRule(() => []), "delete"), // not a double click
  ];
  parts.at(-1).setAttribute("aria-label", translate("Delete the rule"));
  const certainty = certaintyText(rule, condition, plan, model.manifest.size_errors);
  if (certainty) parts.push(createElement("span", "hint", certainty));
  return createElement("li", "rule", ...parts);
}

/** The defect classes that rules can name: the mask has to distinguish them. */
function classesOf({ manifest: { classes, network } }) {
  return classes.length === 2 || network?.mask_classes ? classes.slice(1) : [];
}

/** From which measured sizes a limit decides, by the errors of the model's masks; "" if they are unknown. */
function certaintyText(rule, condition, plan, errors) {
  const { size } = CONDITIONS[condition];
  if (!size || !errors || plan.photograph.perspective) return "";
  const [low, high] = errors[size];
  const { number, unit } = splitQuantity(rule[condition]);
  const error = size === "area" ? 0 : MEASURING_ERROR_PX * (unit === "mm" ? mmPerPx(plan) : 1);
  const text = (value) => `${formatNumber(value, { maximumSignificantDigits: 3 })} ${unit}`;
  const values = { review: text(Math.max(Math.min(number / high, number - error), 0)), certain: text(Math.max(number / low, number + error)) };
  return translate("Masks are inexact: for review from a measured {review}, certain from {certain}.", values);
}

function defectFields(id, rule, classes, onRule) {
  const known = rule.defect && !classes.includes(rule.defect) ? [...classes, rule.defect] : classes;
  const options = [[ANY, translate("any defect")], ...known.map((name) => [name, name])];
  const choose = (name) => onRule(({ defect, ...rest }) => (name === ANY ? rest : { ...rest, defect: name }));
  const score = (number) => onRule(({ min_score: before, ...rest }) => (number > 0 ? { ...rest, min_score: number } : rest));
  const fields = [known.length ? choiceField(`${id}-defect`, translate("Defect"), options, rule.defect ?? ANY, choose) : createElement("span", "", options[0][1])];
  if (rule.min_score) {
    const limits = { max: 1 };
    fields.push(createElement("span", "", translate("with a mask score from")), numberField(`${id}-score`, translate("Lowest mask score"), rule.min_score, score, limits));
  }
  return fields;
}

function limitFields(id, rule, condition, plan, isForPart, onRule) {
  if (!condition) return [];
  if (condition === "more_than") {
    return [numberField(`${id}-limit`, translate("Limit"), rule.more_than, (number) => onRule((present) => ({ ...present, more_than: number })), { step: 1, max: 10_000 })];
  }
  const units = CONDITIONS[condition].units.filter((unit) => !(isForPart && unit === "%"));
  return quantityFields(id, "limit", translate("Limit"), rule[condition], units, plan, (change) => onRule((present) => ({ ...present, [condition]: change(present[condition]) })));
}

function countedFields(id, rule, plan, onRule) {
  if (!rule.counted_from) return [];
  const fields = quantityFields(id, "counted", translate("Length from which a defect counts"), rule.counted_from, LENGTHS, plan, (change) => onRule((present) => ({ ...present, counted_from: change(present.counted_from) })));
  return [createElement("span", "", translate("of at least")), ...fields];
}

/** The fields of a number and its unit; `onQuantity(change)` gets a function from the present text to another. */
function quantityFields(id, name, label, text, units, plan, onQuantity) {
  const { number, unit } = splitQuantity(text);
  const possible = units.filter((one) => hasScale(plan) || !one.startsWith("mm") || one === unit).map((one) => [one, one]);
  const toNumber = (value) => onQuantity((present) => quantityText(value, splitQuantity(present).unit) ?? present);
  const toUnit = (other) => onQuantity((present) => convertQuantity(present, other, plan) ?? quantityText(DEFAULT_NUMBERS[other], other));
  return [
    numberField(`${id}-${name}`, label, number, toNumber, { min: 0.000001 }),
    choiceField(`${id}-${name}-unit`, translate("Unit"), possible, unit, toUnit),
  ];
}

/** A rule without a choice of its beginning. */
export function fixedRuleItem(text, consequence) {
  return createElement("li", "rule", createElement("span", "", text), createElement("span", "", "→"), consequence);
}

/**
 * Which defects rules allow: those with a limit for each, by class, null = any; `isComplete`: a rule names any defect, so
 * that there are no others; `namesAny`: a rule names some.
 */
export function allowedDefects(rules) {
  const forEach = rules.filter((rule) => !rule.min_score && !CONDITIONS[conditionOf(rule)].isTotal);
  const limited = forEach.filter((rule) => conditionOf(rule));
  const classes = (some) => [...new Set(some.map(({ defect }) => defect ?? null))];
  return { allowed: classes(limited), isComplete: classes(forEach).includes(null), namesAny: forEach.length > 0 };
}

function conditionOf(rule) {
  return Object.keys(CONDITIONS).find((name) => name && rule[name] !== undefined) ?? "";
}

/** The rule with another limit; a number with the same unit stays. */
function withCondition(rule, condition, plan) {
  const { defect, min_score: minScore, then, counted_from: counted } = rule;
  const changed = { ...(defect && { defect }), ...(minScore && { min_score: minScore }), then };
  if (!condition) return changed;
  const { units, counts } = CONDITIONS[condition];
  const standard = (possible) => {
    const unit = possible[hasScale(plan) ? 0 : 1];
    return quantityText(DEFAULT_NUMBERS[unit], unit);
  };
  const before = rule[conditionOf(rule)];
  const keeps = units && typeof before === "string" && units.includes(splitQuantity(before).unit);
  changed[condition] = !units ? 3 : keeps ? before : standard(units);
  if (counts && (condition === "more_than" || counted)) changed.counted_from = counted ?? standard(LENGTHS);
  if (then === "accept") changed.then = "reject";
  return changed;
}
