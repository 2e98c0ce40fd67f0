// A row of the table of results.

import { createElement } from "../shared/dom.js";
import { timeText } from "../shared/plant_time.js";
import { partName, scoreText, servingLabel } from "../shared/record_text.js";
import { verdictBadge } from "../shared/verdict_badge.js";

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

function modelText({ answer, refusal }) {
  const { name, version } = (answer ?? refusal).model;
  return `${name} ${version}`;
}

function metadataText(metadata) {
  const text = (value) => (typeof value === "string" ? value : JSON.stringify(value));
  return Object.entries(metadata).map(([key, value]) => `${key}: ${text(value)}`).join(", ");
}
