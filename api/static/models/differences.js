// The photographs on which a candidate and the version that answered differ.

import { attempt } from "../shared/attempt.js";
import { ContactSheet } from "../shared/contact_sheet.js";
import { createElement } from "../shared/dom.js";
import { formatNumber, translate } from "../shared/language.js";
import { timeText } from "../shared/plant_time.js";
import { verdictBadge } from "../shared/verdict_badge.js";

/** A section of the model `name` that loads the photographs when the user opens it; `count` is their number. */
export function differences(name, count, requests) {
  const list = createElement("ul", "contact-sheet");
  const sheet = new ContactSheet(list, requests);
  const more = createElement("button", "", translate("Show more"));
  Object.assign(more, { type: "button", hidden: true });
  const title = translate("Photographs on which the versions differ ({count})", { count: formatNumber(count) });
  const section = createElement("details", "differences", createElement("summary", "", title), list, more);
  let before = null; // cursor of the next page

  async function loadPage() {
    more.disabled = true;
    const page = await attempt(requests.credentials, () => requests.differences(name, before));
    more.disabled = false;
    if (!page) return;
    for (const difference of page.differences) sheet.add(difference, ...aboutDifference(difference));
    before = page.next_before;
    more.hidden = before === null;
  }

  section.addEventListener("toggle", loadPage, { once: true });
  more.addEventListener("click", loadPage);
  return section;
}

function aboutDifference({ serving, candidate, reviewed_label: reviewed, inspected_at: time }) {
  const verdict = (who, label) => createElement("span", "verdict", `${who} `, verdictBadge(label));
  const review = reviewed ? verdict(translate("Review:"), reviewed) : createElement("span", "verdict", translate("Not reviewed"));
  const verdicts = [serving, candidate].map(({ version, label }) => verdict(translate("Version {version}:", { version }), label));
  return [...verdicts, review, timeText(time)];
}
