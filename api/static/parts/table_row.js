// A row of the table of results.

import { createElement } from "../shared/dom.js";
import { partName, scoreText, servingLabel, timeText, verdictKind, verdictText } from "../shared/record_text.js";

/** Adds the row of a record. */
export function addRow(rows, record) {
  const { answer, review } = record;
  const link = createElement("a", "", partName(record));
  link.href = `parts/${record.record_id}`;
  const cells = [
    [link],
    [verdictBadge(servingLabel(record))],
    [answer ? scoreText(answer.decision.score) : "–"],
    review ? [verdictBadge(review.label), ` ${review.reviewer}`] : [""],
    [timeText(record.inspected_at)],
    [record.station],
    [modelText(record)],
    [metadataText(record.metadata)],
  ];
  rows.append(createElement("tr", "", ...cells.map((content) => createElement("td", "", ...content))));
}

/** A verdict with its colours. */
export function verdictBadge(label) {
  const badge = createElement("span", "badge", verdictText(label));
  badge.dataset.kind = verdictKind(label);
  return badge;
}

function modelText({ answer, refusal }) {
  const { name, version } = (answer ?? refusal).model;
  return `${name} ${version}`;
}

function metadataText(metadata) {
  const text = (value) => (typeof value === "string" ? value : JSON.stringify(value));
  return Object.entries(metadata).map(([key, value]) => `${key}: ${text(value)}`).join(", ");
}
