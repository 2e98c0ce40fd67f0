// The message in place of a picture while the queue is empty or loading.

import { byId, setText } from "../shared/dom.js";
import { translate, translateCount } from "../shared/language.js";

/** Shows whether the queue is loading or empty, and offers the skipped tasks. */
export function showEmptyState({ exhausted, waiting, skipped: { length: skipped } }) {
  const elsewhere = waiting > skipped;
  const sentences = [
    translate("Parts of which the model is unsure, and a sample of the others, appear here for a verdict."),
    elsewhere ? translate("The remaining parts are leased to other sessions for up to five minutes.") : "",
    translate("This page refreshes automatically."),
  ];
  setText(byId("empty-title"), exhausted ? emptyTitle(elsewhere, skipped) : translate("Loading …"));
  setText(byId("empty-text"), exhausted ? sentences.filter(Boolean).join(" ") : "");
  setText(byId("show-skipped"), translateCount(skipped, "Show the skipped part", "Show the {count} skipped parts"));
  byId("show-skipped").hidden = !exhausted || !skipped;
  byId("show-parts").hidden = !exhausted || skipped > 0;
}

function emptyTitle(elsewhere, skipped) {
  if (elsewhere) return translate("Nothing to review in this session");
  return skipped ? translate("Nothing else to review") : translate("Nothing to review");
}
