// What reviews say about missed defects and false alarms, for the whole time and for each period.

import { byId, createElement, setText } from "../shared/dom.js";
import { whoCan } from "../shared/empty_state.js";
import { translate } from "../shared/language.js";
import { drawErrors } from "./plots.js";
import { agreementSentence, alarmsSentence, missedSentence, moreReviewsSentence } from "./sentences.js";

const MAX_PERIODS = 60; // each period is a request
const ONLY_STATION = translate(
  "The errors are estimated for all parts of a station. Remove the version and the metadata to see them.",
);
const TOO_MANY = translate("The errors of each period are shown for up to {count} periods.", { count: MAX_PERIODS });

/** Fetches and shows the errors; stops when `isCurrent()` is false. */
export async function showErrors(requests, { periods, zone }, query, isCurrent) {
  const hint = query.has("version") || query.has("metadata") ? ONLY_STATION : periods.length > MAX_PERIODS ? TOO_MANY : "";
  setText(byId("no-errors"), hint);
  byId("errors").hidden = Boolean(hint);
  for (const id of ["missed-summary", "alarms-summary", "more-reviews", "agreement"]) setText(byId(id), "");
  if (hint === ONLY_STATION) return;
  const station = query.get("station");
  const time = [periods[0].begin, periods.at(-1).end, station];
  const [whole, agreement] = await Promise.all([requests.statistics(...time), requests.agreement(...time)]);
  if (!isCurrent()) return;
  setText(byId("missed-summary"), missedSentence(whole));
  setText(byId("alarms-summary"), alarmsSentence(whole));
  showMoreReviews(moreReviewsSentence(whole));
  setText(byId("agreement"), agreementSentence(agreement));
  if (hint) return;
  const errors = [];
  for (const { begin, end, inspected } of periods) {
    const found = inspected ? await requests.statistics(begin, end, station) : null;
    if (!isCurrent()) return;
    errors.push({ begin, missed: found && upperMissed(found), alarms: found?.false_alarm_share.value ?? null });
  }
  drawErrors(byId("errors"), errors, zone);
}

/** Shows the sentence, and the setting that brings more reviews to those who may change it. */
function showMoreReviews(sentence) {
  const change = translate("Change how many are sampled for review");
  const link = createElement("a", "", change);
  link.href = "settings";
  link.dataset.needs = "engineer";
  byId("more-reviews").replaceChildren(...(sentence ? [sentence, " ", link, whoCan(change, "engineer")] : []));
}

function upperMissed({ missed, called_good: good }) {
  return good && missed.value !== null ? missed.high / good : null;
}
