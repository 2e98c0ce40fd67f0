// A version of a model: its aliases, thresholds, metrics, engines and origin.

import { createElement } from "../shared/dom.js";
import { formatDecimals, formatNumber, translate } from "../shared/language.js";
import { limitsText } from "../shared/record_text.js";
import { operatingPoints } from "./operating_points.js";
import { confirmedList } from "./confirmed_list.js";
import { outcomeCurve } from "./outcome_curve.js";
import { levelText, ratingNote } from "./rating_note.js";
import { ModelRequests } from "./requests.js";
import { thresholdForm } from "./threshold_form.js";

const ALIASES = { stable: translate("answers"), candidate: translate("candidate"), previous: translate("previous") };
const SPLITS = {
  train: translate("training photographs, each by models that were not trained on it"),
  val: translate("validation photographs"),
  test: translate("test photographs"),
};
const REPORT = "report.html";

/**
 * The card of a version; `comparison` compares a candidate with the version that answers, or is null.
 * `setThresholds(title, text, limits)` changes its thresholds; `withdraw(entry)` undoes a confirmation of photographs;
 * `openReport(event)` is called for a click on its report.
 */
export function versionCard(model, comparison, { setThresholds, withdraw, openReport }) {
  const { version, sha256, aliases, manifest } = model;
  const badges = aliases.map((alias) => Object.assign(createElement("span", "model-alias", ALIASES[alias] ?? alias), { title: alias, translate: false }));
  for (const [index, alias] of aliases.entries()) badges[index].dataset.alias = alias;
  const title = createElement("h3", "", `${translate("Version {version}", { version })} `, ...badges);
  const note = ratingNote(manifest);
  const about = [factList(facts(model))];
  if (REPORT in (manifest.files ?? {})) about.push(reportLink(model, openReport));
  if (comparison) about.push(createElement("h4", "", translate("Compared with the version that answers")), factList(comparisonFacts(comparison)));
  const confirmed = confirmedList(model.confirmed, withdraw);
  const decisions = [
    ...operatingPoints(model, setThresholds),
    ...outcomeCurve(model, setThresholds),
    thresholdForm(model, setThresholds),
    ...(confirmed ? [confirmed] : []),
    details(manifest),
  ];
  const columns = createElement("div", "columns", createElement("div", "", ...about), createElement("div", "", ...decisions));
  return createElement("article", "", title, ...(note ? [note] : []), columns);
}

function planText({ name, version, station }) {
  return `${name} ${version}: ${station || translate("the stations without a plan of their own")}`;
}

function reportLink(model, openReport) {
  const link = createElement("a", "", translate("Report of the evaluation"));
  Object.assign(link, { href: ModelRequests.reportPath(model), target: "_blank", rel: "noopener", hreflang: "en" });
  link.addEventListener("click", openReport);
  return createElement("p", "", link);
}

function facts({ sha256, manifest, thresholds, plans, signed_by: signedBy }) {
  const { classes, thresholds: own, metrics = {}, metrics_split: split, encoder, parent, segdec_version: made } = manifest;
  const measured = (name) => (metrics[name] === undefined ? [] : [[NAMES[name], number(metrics[name])]]);
  return [
    [translate("Classes"), classes.join(", ")],
    [translate("Thresholds"), limitsText(thresholds)],
    ...(thresholds.of_model ? [] : [[translate("Of the model"), translate("{limits}; not in use", { limits: limitsText(own) })]]),
    ...(plans.length ? [[translate("Inspection plan"), plans.map(planText).join("; ")]] : []),
    [translate("Rating"), manifest.rating ? levelText(manifest.rating.level) : translate("unknown")],
    ...(split ? [[translate("Measured on"), SPLITS[split] ?? split]] : []),
    ...Object.keys(NAMES).flatMap(measured),
    [translate("Encoder"), encoder ? encoderText(encoder) : translate("trained from random weights")],
    [translate("Trained on"), parent ? translate("version {version} and new photographs", parent) : translate("its own data set")],
    ...(made ? [[translate("Exported with"), `segdec ${made}`]] : []),
    ["SHA-256", sha256 ?? "–"],
    ...(signedBy ? [[translate("Signed with the key"), signedBy]] : []),
  ];
}

function encoderText({ encoder, weights }) {
  return translate("{encoder}, weights: {weights}", { encoder, weights });
}

const NAMES = {
  average_precision: translate("Average precision"),
  auroc: "AUROC",
  missed: translate("Missed defects"),
  false_alarms: translate("False alarms"),
};

function comparisonFacts({ serving, answered, differing, not_inspected: refused, reviewed }) {
  const share = answered ? ` (${formatDecimals((100 * differing) / answered, 1)} %)` : "";
  const right = { count: formatNumber(reviewed.candidate) };
  return [
    [translate("Photographs"), formatNumber(answered)],
    [translate("Differs from {version}", { version: serving }), `${formatNumber(differing)}${share}`],
    [translate("Not inspected by the candidate"), formatNumber(refused)],
    [translate("Candidate was right"), translate("{count} of the reviewed differences", right)],
    [translate("Version {version} was right", { version: serving }), formatNumber(reviewed.serving)],
    [translate("Neither, or unsure"), formatNumber(reviewed.neither + reviewed.unsure)],
  ];
}

function details({ variants = {}, speed, metrics = {} }) {
  const engines = Object.entries(variants).map(([name, { precision, verification }]) => {
    const time = speed?.cpu_ms?.[name] === undefined ? "" : `, ${formatNumber(speed.cpu_ms[name])} ms`;
    return [name, `${precision}${time}${verification ? `, ${verificationText(verification)}` : ""}`];
  });
  const all = Object.entries(metrics).map(([name, value]) => [name, number(value)]);
  const made = createElement("details", "", createElement("summary", "", translate("Engines and all metrics")));
  made.append(factList(engines), ...(speed ? [createElement("p", "hint", speedText(speed))] : []), factList(all));
  return made;
}

function verificationText({ decisions_changed: changed, photographs }) {
  const counts = { changed: formatNumber(changed), photographs: formatNumber(photographs) };
  return translate("{changed} of {photographs} with another label", counts);
}

function speedText({ width, height, processor }) {
  return translate("Processor time of {size} on {processor}.", { size: `${width} × ${height} px`, processor });
}

function factList(pairs) {
  return createElement("dl", "", ...pairs.flatMap(([name, value]) => [createElement("dt", "", name), createElement("dd", "", value)]));
}

function number(value) {
  return Number.isInteger(value) ? formatNumber(value) : formatNumber(value, { minimumSignificantDigits: 4, maximumSignificantDigits: 4 });
}
