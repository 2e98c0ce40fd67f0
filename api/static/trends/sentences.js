// What the page says about the numbers.

import { formatDecimals, formatNumber, translate, translateCount } from "../shared/language.js";

const TARGET = 0.01; // of the parts called good
const TAIL = 0.025; // on each side of a 95 % interval

const BEYOND = {
  day: (count) => translateCount(count, "{count} day beyond the control limits.", "{count} days beyond the control limits."),
  week: (count) => translateCount(count, "{count} week beyond the control limits.", "{count} weeks beyond the control limits."),
  month: (count) => translateCount(count, "{count} month beyond the control limits.", "{count} months beyond the control limits."),
};

/** The defect rate of the whole time, and the periods beyond the limits. */
export function rateSentence(periods, by) {
  const inspected = sum(periods, "inspected");
  if (!inspected) return translate("Nothing was inspected.");
  const defective = sum(periods, "defective");
  const beyond = periods.filter(({ out }) => out).length;
  const text = translate("{share} defective: {defective} of {inspected}.", {
    share: percent(defective / inspected),
    defective: formatNumber(defective),
    inspected: formatNumber(inspected),
  });
  if (periods.every(({ high }) => high === null)) return `${text} ${translate("Too few finished periods for control limits.")}`;
  return beyond ? `${text} ${BEYOND[by](beyond)}` : text;
}

/** The upper bound of missed defects. */
export function missedSentence({ called_good: good, missed }) {
  if (!good) return translate("No part was called good.");
  if (missed.value === null) {
    return translateCount(
      good,
      "Too few reviews to tell whether {count} part called good is defective.",
      "Too few reviews to tell how many of {count} parts called good are defective.",
    );
  }
  return translateCount(
    good,
    "Of {count} part called good, at most {share} are defective.",
    "Of {count} parts called good, at most {share} are defective.",
    { share: percent(missed.high / good) },
  );
}

/** The share of false alarms. */
export function alarmsSentence({ called_defective: defective, false_alarm_share: share }) {
  if (!defective) return translate("No part was called defective.");
  if (share.value === null) {
    return translateCount(
      defective,
      "{count} part called defective was not reviewed yet.",
      "Of {count} parts called defective, none was reviewed yet.",
    );
  }
  return translateCount(
    defective,
    "Of {count} part called defective, about {share} are good ({low} to {high}).",
    "Of {count} parts called defective, about {share} are good ({low} to {high}).",
    { share: percent(share.value), low: percent(share.low), high: percent(share.high) },
  );
}

/** How many more reviews show that few defects are missed; "" if there are enough. */
export function moreReviewsSentence({ called_good: good, missed }) {
  if (!good || missed.high === null || missed.high / good <= TARGET) return "";
  const needed = Math.ceil(Math.log(TAIL) / Math.log(1 - TARGET));
  const reviewed = missed.value === null ? 0 : Math.round(Math.log(TAIL) / Math.log(1 - Math.min(missed.high / good, 0.999)));
  const more = Math.max(needed - reviewed, 1);
  if (missed.value) return "";
  return translateCount(
    more,
    "About {count} more review of a part called good, without a defect, would show that at most {share} are defective.",
    "About {count} more reviews of parts called good, without a defect among them, would show that at most {share} are defective.",
    { share: percent(TARGET) },
  );
}

/** How often two reviewers of a photograph agreed. */
export function agreementSentence({ reviewed_twice: pairs, agreed }) {
  if (!pairs) return translate("No photograph was reviewed by two people, so that their agreement is unknown.");
  return translateCount(
    pairs,
    "{count} photograph was reviewed by two people; they agreed on {agreed} ({share}) of them.",
    "{count} photographs were reviewed by two people; they agreed on {agreed} ({share}) of them.",
    { agreed: formatNumber(agreed), share: percent(agreed / pairs) },
  );
}

export function percent(share) {
  return `${formatDecimals(100 * share, share < 0.1 ? 2 : 1)} %`;
}

function sum(periods, name) {
  return periods.reduce((total, period) => total + period[name], 0);
}
