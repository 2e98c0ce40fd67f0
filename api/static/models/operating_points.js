// The operating points of a model: thresholds to choose from, with what they reject and miss.

import { createElement } from "../shared/dom.js";
import { formatNumber, translate } from "../shared/language.js";
import { limitsText } from "../shared/record_text.js";
import { applyText } from "./threshold_form.js";

const GOALS = {
  "lowest cost": translate("lowest cost"),
  "at most 1 % rejected": translate("at most 1 % rejected"),
  "at most 1 % missed": translate("at most 1 % missed"),
};

const OWN = "chosen"; // the thresholds of the model

/** The elements that show them; none if the model has none. `apply` as in `thresholdForm`. */
export function operatingPoints(model, apply) {
  const known = model.manifest.operating_points;
  if (!known) return [];
  const heads = [translate("Threshold"), translate("Good rejected"), translate("Defects missed"), ""];
  const head = createElement("tr", "", ...heads.map((text) => Object.assign(createElement("th", "", text), { scope: "col" })));
  const used = known.points.find((point) => isInUse(model, point));
  const rows = known.points.map((point) => pointRow(model, point, used, apply));
  const table = createElement("table", "points", createElement("thead", "", head), createElement("tbody", "", ...rows));
  const notes = known.points.flatMap(({ note }) => (note ? [` ${note}`] : []));
  const basis = translate("Shares of parts with 95 % intervals, measured on {photographs}.", { photographs: known.measured_on });
  return [createElement("h4", "", translate("Operating points")), table, createElement("p", "hint", basis, ...notes)];
}

function pointRow(model, point, used, apply) {
  const { version, thresholds } = model;
  const isOwn = point.goal === OWN;
  const limits = limitsOf(model, point);
  const goal = GOALS[point.goal] ?? point.goal;
  const name = createElement("td", "", isOwn ? translate("of the model") : goal, createElement("span", "hint", limitsText(limits)), ...reviewHint(point));
  const action = createElement("td", "");
  if (point === used) {
    action.append(translate("in use"));
  } else if (isInUse(model, point)) {
    action.append(translate("the same decisions"));
  } else {
    const button = createElement("button", "", translate("Apply"));
    button.dataset.needs = "engineer";
    button.type = "button";
    button.setAttribute("aria-label", isOwn ? translate("Apply the thresholds of the model") : translate("Apply: {goal}", { goal }));
    const sent = isOwn ? { score: null, review: null } : limits;
    button.addEventListener("click", () => apply(translate("Apply thresholds"), applyText(version, thresholds, limits), sent));
    action.append(button);
  }
  return createElement("tr", "", name, shareCell(point.rejected), shareCell(point.missed), action);
}

/** Whether a version decides by these limits, or by its own ones, which reject and miss equally many parts. */
function isInUse(model, point) {
  const { thresholds, manifest } = model;
  const limits = limitsOf(model, point);
  if (thresholds.score === limits.score && thresholds.review === limits.review) return true;
  const [own] = manifest.operating_points.points;
  const errors = ({ rejected, missed }) => JSON.stringify([rejected, missed]);
  return thresholds.of_model && thresholds.review === null && errors(point) === errors(own);
}

function limitsOf({ manifest }, point) {
  return point.goal === OWN ? manifest.thresholds : { score: point.threshold, review: null };
}

function shareCell(share) {
  if (!share) return createElement("td", "", "–");
  const { count, parts, low, high } = share;
  const interval = translate("{low} to {high} %", { low: percent(low), high: percent(high) });
  return createElement("td", "", `${percent(count / parts)} %`, createElement("span", "hint", interval));
}

/** How many of all parts are for review, at the defect rate of the model; none if no part is. */
function reviewHint({ expected }) {
  if (!expected?.review.value) return [];
  const [share, low, high] = ["value", "low", "high"].map((name) => percent(expected.review[name] / 1000));
  return [createElement("span", "hint", translate("for review: {share} % of the parts, {low} to {high} %", { share, low, high }))];
}

function percent(share) {
  const value = 100 * share;
  return formatNumber(value, value < 9.95 ? { maximumSignificantDigits: 2 } : { maximumFractionDigits: 0 });
}
