// What an inspection plan says about a photograph.

import { formatNumber, translate } from "./language.js";

const MEASURES = {
  longer_than: translate("length of {defect}"),
  wider_than: translate("width of {defect}"),
  larger_than: translate("area of {defect}"),
  more_than: translate("number of {defect}"),
  total_larger_than: translate("total area of {defect}"),
  closer_than: translate("distance of two {defect}"),
};

const CAUSES = {
  rule: "{defect}",
  otherwise: translate("{defect}, which no rule allows"),
  outside_zones: translate("{defect} outside all zones"),
  unexplained: translate("defective by its score, but no mask score reaches the threshold"),
  too_many_defects: translate("too many or too large defects to measure"),
  unlike_training: translate("photograph unlike those of the training"),
};

const CONSEQUENCES = {
  accept: translate("accept"),
  note: translate("accept and note"),
  review: translate("for review"),
  reject: translate("reject"),
  stop: translate("reject and stop the line"),
};

/** Which plan decided, and why; "" without a plan. */
export function planText(plan) {
  if (!plan) return "";
  const { name, version } = plan;
  return translate("Inspection plan {name}, version {version}: {finding}.", { name, version, finding: decidingText(plan) });
}

function decidingText({ findings, defect_count: defects }) {
  if (findings.length) return findingText(findings[0]);
  return defects ? translate("all defects are within the limits") : translate("no defect");
}

/** A finding with its measure. */
export function findingText({ zone, cause, classes, condition, measured, limit, certain, severity }) {
  const defect = classes.join(", ") || translate("defect");
  const subject = measured ? measureText({ condition, defect, measured, limit }) : CAUSES[cause].replace("{defect}", () => defect);
  const place = cause === "rule" || cause === "otherwise" ? `${zone ?? translate("whole part")}: ` : "";
  const uncertain = certain || measured ? "" : `, ${translate("uncertain")}`;
  return `${place}${subject}${uncertain}: ${CONSEQUENCES[severity]}`;
}

function measureText({ condition, defect, measured, limit }) {
  const { value, low, high, unit } = measured;
  const size = (number) => `${formatNumber(number, { maximumSignificantDigits: 3 })} ${unit}`.trim();
  const values = { value: size(value), low: size(low), limit: size(limit), measure: MEASURES[condition].replace("{defect}", () => defect) };
  if (high === null) return translate("{measure} {value} (at least {low}), limit {limit}", values);
  if (low === high) return translate("{measure} {value}, limit {limit}", values);
  return translate("{measure} {value} ({low} to {high} possible), limit {limit}", { ...values, high: size(high) });
}
