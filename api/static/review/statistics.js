// Estimated miss and false alarm rates, from the reviews, as sentences.

import { byId, createElement } from "../shared/dom.js";
import { formatNumber, translate, translateCount } from "../shared/language.js";
import { beginOfToday } from "../shared/plant_time.js";

const DAY_MS = 86_400_000;
const DAYS = 7;

/** Shows the statistics of today and of the last days; `requests` fetches them. */
export async function showStatistics(requests) {
  byId("statistics").showModal();
  const earlier = new Date(Date.now() - DAYS * DAY_MS).toISOString();
  const spans = [[translate("Today"), beginOfToday()], [translateCount(DAYS, "Last day", "Last {count} days"), earlier]];
  byId("statistics-periods").replaceChildren(...spans.map(([title]) => spanSection(title, [createElement("p", "hint", translate("Loading …"))])));
  const sections = spans.map(async ([title, since]) => {
    try {
      return spanSection(title, describe(await requests.statistics(since, null, requests.station)));
    } catch (error) {
      return spanSection(title, [createElement("p", "trouble", error.message)]);
    }
  });
  byId("statistics-periods").replaceChildren(...(await Promise.all(sections)));
}

/** Sentences about a period: {headline, facts, notes}. */
export function sentences(found) {
  const { called_good: good, called_defective: defective, for_review: doubtful, drawn, reviewed, unsure } = found;
  const counts = { inspected: number(found.inspected), uncertain: number(doubtful), unsure: number(unsure) };
  Object.assign(counts, { drawn: number(drawn), reviewed: number(reviewed) });
  return {
    headline: missedSentence(good, found.missed),
    facts: [
      alarmsSentence(defective, found.false_alarms),
      ...(good ? [missRateSentence(found.miss_rate)] : []),
      defectRateSentence(found.defect_rate),
      `${translate("{inspected} inspected, {uncertain} of them uncertain.", counts)} ${sampledSentence(counts, unsure)}`,
    ],
    notes: found.notes,
  };
}

function sampledSentence(counts, unsure) {
  if (!unsure) return translate("{drawn} selected for review, {reviewed} reviewed.", counts);
  return translate("{drawn} selected for review, {reviewed} reviewed, {unsure} of them unsure.", counts);
}

function missedSentence(good, { value, low, high }) {
  if (!good) return translate("No part was predicted good.");
  const all = number(good);
  if (!isNumber(value)) return translate("Of {all} predicted good: too few reviews to estimate how many are defective.", { all });
  return translateCount(
    Number(value.toFixed(1)),
    "Of {all} predicted good, about {value} is defective{interval}.",
    "Of {all} predicted good, about {value} are defective{interval}.",
    { all, value: number(value), interval: interval(low, high, number) },
  );
}

function alarmsSentence(defective, { value, low, high }) {
  if (!defective) return translate("No part was predicted defective.");
  const all = number(defective);
  if (!isNumber(value)) return translate("Of {all} predicted defective: too few reviews to estimate how many are good.", { all });
  return translateCount(
    Number(value.toFixed(1)),
    "Of {all} predicted defective, about {value} is good{interval}.",
    "Of {all} predicted defective, about {value} are good{interval}.",
    { all, value: number(value), interval: interval(low, high, number) },
  );
}

function missRateSentence({ value, low, high }) {
  if (!isNumber(value)) return translate("Of all defective parts: too few reviews to estimate how many are missed.");
  const values = { share: percent(value), interval: interval(low, high, percent) };
  return translate("Of all defective parts, about {share} are missed{interval}.", values);
}

function defectRateSentence({ value, low, high }) {
  if (!isNumber(value)) return translate("Of all parts: too few reviews to estimate how many are defective.");
  const values = { share: percent(value), interval: interval(low, high, percent) };
  return translate("Of all parts, about {share} are defective{interval}.", values);
}

/** The limits of an estimate in parentheses; "" if there are none. */
function interval(low, high, write) {
  const values = { low: isNumber(low) && write(low), high: isNumber(high) && write(high) };
  if (isNumber(low) && isNumber(high)) return ` ${translate("({low} to {high})", values)}`;
  if (isNumber(low)) return ` ${translate("(at least {low})", values)}`;
  return isNumber(high) ? ` ${translate("(at most {high})", values)}` : "";
}

function isNumber(value) {
  return typeof value === "number";
}

/** A number; below 10 with one decimal. */
function number(value) {
  return formatNumber(value, { maximumFractionDigits: value < 10 ? 1 : 0 });
}

function percent(share) {
  return `${formatNumber(100 * share, { maximumSignificantDigits: share < 0.1 ? 2 : 3 })}\u202f%`;
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
