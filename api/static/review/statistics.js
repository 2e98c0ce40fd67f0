// Estimated miss and false alarm rates, from the reviews, as sentences.

import { byId, createElement } from "../shared/dom.js";

const DAY_MS = 86_400_000;
const DAYS = 7;

/** Shows the statistics of today and of the last days; `requests` fetches them. */
export async function showStatistics(requests) {
  byId("statistics").showModal();
  const now = new Date();
  const midnight = new Date(now.getFullYear(), now.getMonth(), now.getDate());
  const spans = [["Today", midnight], [`Last ${DAYS} days`, new Date(now - DAYS * DAY_MS)]];
  byId("statistics-periods").replaceChildren(...spans.map(([title]) => spanSection(title, [createElement("p", "hint", "Loading …")])));
  const sections = spans.map(async ([title, since]) => {
    try {
      return spanSection(title, describe(await requests.statistics(since.toISOString(), null, requests.station)));
    } catch (error) {
      return spanSection(title, [createElement("p", "trouble", error.message)]);
    }
  });
  byId("statistics-periods").replaceChildren(...(await Promise.all(sections)));
}

/** Sentences about a period: {headline, facts, notes}. */
export function sentences(found) {
  const { called_good: good, called_defective: defective, for_review: doubtful, drawn, reviewed, unsure } = found;
  const sampled = `${number(drawn)} selected for review, ${number(reviewed)} reviewed`;
  return {
    headline: countSentence(good, "predicted good", found.missed, "defective"),
    facts: [
      countSentence(defective, "predicted defective", found.false_alarms, "good"),
      ...(good ? [shareSentence("Of all defective parts", found.miss_rate, "are missed")] : []),
      shareSentence("Of all parts", found.defect_rate, "are defective"),
      `${number(found.inspected)} inspected, ${number(doubtful)} of them uncertain. ${sampled}${unsure ? `, ${number(unsure)} of them unsure` : ""}.`,
    ],
    notes: found.notes,
  };
}

function countSentence(count, called, { value, low, high }, truly) {
  if (!count) return `No part was ${called}.`;
  const among = `Of ${number(count)} ${called}`;
  if (!isNumber(value)) return `${among}: too few reviews to estimate how many are ${truly}.`;
  return `${among}, about ${number(value)} ${number(value) === "1" ? "is" : "are"} ${truly}${interval(low, high, number)}.`;
}

function shareSentence(among, { value, low, high }, what) {
  if (!isNumber(value)) return `${among}: too few reviews to estimate how many ${what}.`;
  return `${among}, about ${percent(value)} ${what}${interval(low, high, percent)}.`;
}

function interval(low, high, write) {
  if (isNumber(low) && isNumber(high)) return ` (${write(low)} to ${write(high)})`;
  if (isNumber(low)) return ` (at least ${write(low)})`;
  return isNumber(high) ? ` (at most ${write(high)})` : "";
}

function isNumber(value) {
  return typeof value === "number";
}

/** A number with thin spaces between thousands; below 10 with one decimal. */
function number(value) {
  const digits = value < 10 ? 1 : 0;
  return value.toLocaleString("en", { maximumFractionDigits: digits }).replaceAll(",", "\u202f");
}

function percent(share) {
  return `${(100 * share).toLocaleString("en", { maximumSignificantDigits: share < 0.1 ? 2 : 3 })}\u202f%`;
}

function describe(found) {
  const { headline, facts, notes } = sentences(found);
  const list = document.createElement("ul");
  list.append(...facts.map((fact) => createElement("li", "", fact)));
  return [createElement("p", "headline", headline), list, ...notes.map((note) => createElement("p", "note", note))];
}

function spanSection(title, parts) {
  const section = document.createElement("section");
  section.append(createElement("h3", "", title), ...parts);
  return section;
}
