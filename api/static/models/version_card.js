// A version of a model: its labels, thresholds, metrics, engines and origin.

import { createElement } from "../shared/dom.js";
import { limitsText } from "../shared/record_text.js";
import { operatingPoints } from "./operating_points.js";
import { ratingNote } from "./rating_note.js";
import { ModelRequests } from "./requests.js";
import { thresholdForm } from "./threshold_form.js";

const LABELS = { stable: "answers", candidate: "candidate", previous: "previous" };
const REPORT = "report.html";
const whole = new Intl.NumberFormat("en");

/**
 * The card of a version; `comparison` compares a candidate with the version that answers, or is null.
 * `setThresholds(title, text, limits)` changes its thresholds; `openReport(event)` is called for a click on its report.
 */
export function versionCard(model, comparison, { setThresholds, openReport }) {
  const { version, sha256, labels, manifest } = model;
  const badges = labels.map((label) => Object.assign(createElement("span", "model-label", LABELS[label] ?? label), { title: label }));
  for (const [index, label] of labels.entries()) badges[index].dataset.label = label;
  const title = createElement("h3", "", `Version ${version} `, ...badges);
  const note = ratingNote(manifest);
  const parts = [title, ...(note ? [note] : []), factList(facts(model))];
  if (REPORT in (manifest.files ?? {})) parts.push(reportLink(model, openReport));
  if (comparison) parts.push(createElement("h4", "", "Compared with the version that answers"), factList(comparisonFacts(comparison)));
  parts.push(...operatingPoints(model, setThresholds), thresholdForm(model, setThresholds), details(manifest));
  return createElement("article", "", ...parts);
}

function reportLink(model, openReport) {
  const link = createElement("a", "", "Report of the evaluation");
  Object.assign(link, { href: ModelRequests.reportPath(model), target: "_blank", rel: "noopener" });
  link.addEventListener("click", openReport);
  return createElement("p", "", link);
}

function facts({ sha256, manifest, thresholds }) {
  const { classes, thresholds: own, metrics = {}, metrics_split: split, encoder, parent, segdec_version: made } = manifest;
  const measured = (name) => (metrics[name] === undefined ? [] : [[NAMES[name], number(metrics[name])]]);
  return [
    ["Classes", classes.join(", ")],
    ["Thresholds", limitsText(thresholds)],
    ...(thresholds.of_model ? [] : [["Of the model", `${limitsText(own)}; not in use`]]),
    ["Rating", manifest.rating?.level ?? "unknown"],
    ...(split ? [["Measured on", split]] : []),
    ...Object.keys(NAMES).flatMap(measured),
    ["Encoder", encoder ? `${encoder.encoder}, weights: ${encoder.weights}` : "trained from random weights"],
    ["Trained on", parent ? `version ${parent.version} and new photographs` : "its own data set"],
    ...(made ? [["Exported with", `segdec ${made}`]] : []),
    ["SHA-256", sha256 ?? "–"],
  ];
}

const NAMES = {
  average_precision: "Average precision",
  auroc: "AUROC",
  missed: "Missed defects",
  false_alarms: "False alarms",
};

function comparisonFacts({ serving, answered, differing, not_inspected: refused, reviewed }) {
  const share = answered ? ` (${((100 * differing) / answered).toFixed(1)} %)` : "";
  return [
    ["Photographs", whole.format(answered)],
    [`Differs from ${serving}`, `${whole.format(differing)}${share}`],
    ["Not inspected by the candidate", whole.format(refused)],
    ["Candidate was right", `${reviewed.candidate} of the reviewed differences`],
    [`Version ${serving} was right`, String(reviewed.serving)],
    ["Neither, or unsure", String(reviewed.neither + reviewed.unsure)],
  ];
}

function details({ variants = {}, speed, metrics = {} }) {
  const engines = Object.entries(variants).map(([name, { precision, verification }]) => {
    const time = speed?.cpu_ms?.[name] === undefined ? "" : `, ${speed.cpu_ms[name]} ms`;
    const changed = verification ? `, ${verification.decisions_changed} of ${verification.photographs} labels differ` : "";
    return [name, `${precision}${time}${changed}`];
  });
  const all = Object.entries(metrics).map(([name, value]) => [name, number(value)]);
  const made = createElement("details", "", createElement("summary", "", "Engines and all metrics"));
  made.append(factList(engines), ...(speed ? [createElement("p", "hint", `Processor time of ${speed.width} × ${speed.height} px on ${speed.processor}.`)] : []), factList(all));
  return made;
}

function factList(pairs) {
  return createElement("dl", "", ...pairs.flatMap(([name, value]) => [createElement("dt", "", name), createElement("dd", "", value)]));
}

function number(value) {
  return Number.isInteger(value) ? whole.format(value) : value.toPrecision(4);
}
