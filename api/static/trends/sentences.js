// What the page says about the numbers.

const whole = new Intl.NumberFormat("en");
const TARGET = 0.01; // of the parts called good
const TAIL = 0.025; // on each side of a 95 % interval

/** The defect rate of the whole time, and the periods beyond the limits. */
export function rateSentence(periods, by) {
  const inspected = sum(periods, "inspected");
  if (!inspected) return "Nothing was inspected.";
  const defective = sum(periods, "defective");
  const beyond = periods.filter(({ out }) => out).length;
  const unit = beyond === 1 ? by : `${by}s`;
  const limits = beyond ? ` ${beyond} ${unit} beyond the control limits.` : "";
  return `${percent(defective / inspected)} defective: ${whole.format(defective)} of ${whole.format(inspected)}.${limits}`;
}

/** The upper bound of missed defects. */
export function missedSentence({ called_good: good, missed }) {
  if (!good) return "No part was called good.";
  const most = missed.high === null ? "" : `at most ${percent(missed.high / good)} are defective`;
  return most ? `Of ${whole.format(good)} parts called good, ${most}.` : "";
}

/** The share of false alarms. */
export function alarmsSentence({ called_defective: defective, false_alarm_share: share }) {
  if (!defective) return "No part was called defective.";
  if (share.value === null) return `Of ${whole.format(defective)} parts called defective, none was reviewed yet.`;
  return `Of ${whole.format(defective)} parts called defective, about ${percent(share.value)} are good (${percent(share.low)} to ${percent(share.high)}).`;
}

/** How many more reviews show that few defects are missed; "" if there are enough. */
export function moreReviewsSentence({ called_good: good, missed }) {
  if (!good || missed.high === null || missed.high / good <= TARGET) return "";
  const needed = Math.ceil(Math.log(TAIL) / Math.log(1 - TARGET));
  const reviewed = missed.value === null ? 0 : Math.round(Math.log(TAIL) / Math.log(1 - Math.min(missed.high / good, 0.999)));
  const more = Math.max(needed - reviewed, 1);
  if (missed.value) return "";
  return `About ${whole.format(more)} more reviews of parts called good, without a defect among them, would show that at most ${percent(TARGET)} are. The setting --record-good-share of the service decides how many are sampled for review.`;
}

export function percent(share) {
  return `${(100 * share).toFixed(share < 0.1 ? 2 : 1)} %`;
}

function sum(periods, name) {
  return periods.reduce((total, period) => total + period[name], 0);
}
