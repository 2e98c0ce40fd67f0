// What an inspection plan says about a photograph.

import { formatNumber, translate } from "./language.js";

const MEASURES = {
  longer_than: (defect) => translate("length of {defect}", { defect }),
  wider_than: (defect) => translate("width of {defect}", { defect }),
  larger_than: (defect) => translate("area of {defect}", { defect }),
  more_than: (defect) => translate("number of {defect}", { defect }),
  total_larger_than: (defect) => translate("total area of {defect}", { defect }),
  closer_than: (defect) => translate("distance of two {defect}", { defect }),
};

const CAUSES = {
  rule: (defect) => defect,
  otherwise: (defect) => translate("{defect}, which no rule allows", { defect }),
  outside_zones: (defect) => translate("{defect} outside all zones", { defect }),
  unexplained: () => translate("defective by its score, but no mask score reaches the threshold"),
  too_many_defects: () => translate("too many or too large defects to measure"),
  unlike_training: () => translate("photograph unlike those of the training"),
};

/** What can follow from a finding, the mildest first. */
export const CONSEQUENCES = {
  accept: translate("accept"),
  note: translate("accept and note"),
  review: translate("for review"),
  reject: translate("reject"),
  stop: translate("reject and stop the line"),
};

/** Which plan decided, and why; "" without a plan. */
export function planVerdictText(plan) {
  if (!plan) return "";
  const { name, version } = plan;
  return translate("Inspection plan {name}, version {version}: {finding}.", { name, version, finding: decidingText(plan) });
}

/** The finding that decided, with its measure. */
export function decidingText({ findings, defect_count: defects }) {
  if (findings.length) return findingText(findings[0]);
  return defects ? translate("all defects are within the limits") : translate("no defect");
}

/** A finding with its measure. */
export function findingText({ zone, cause, classes, condition, measured, limit, certain, severity }) {
  const defect = classes.join(", ") || translate("defect");
  const subject = measured ? measureText({ condition, defect, measured, limit }) : CAUSES[cause](defect);
  const place = cause === "rule" || cause === "otherwise" ? `${zone ?? translate("whole part")}: ` : "";
  const uncertain = certain ? "" : `, ${translate("uncertain")}`;
  return `${place}${subject}${uncertain}: ${CONSEQUENCES[severity]}`;
}

function measureText({ condition, defect, measured, limit }) {
  const { value, low, high, unit } = measured;
  const size = (number, of = unit) => `${formatNumber(number, { maximumSignificantDigits: 3 })} ${of}`.trim();
  const values = { value: size(value), low: size(low), limit: size(limit), measure: MEASURES[condition](defect) };
  if (high === null) return translate("{measure} {value} (at least {low}), limit {limit}", values);
  if (low === high) return translate("{measure} {value}, limit {limit}", values);
  return translate("{measure} {value} ({low} to {high} possible), limit {limit}", { ...values, low: size(low, ""), high: size(high) });
}
