// The message in place of a picture while the queue is empty or loading.

import { byId, setText } from "../shared/dom.js";

/** Shows whether the queue is loading or empty, and offers the skipped tasks. */
export function showEmptyState({ exhausted, waiting, skipped: { length: skipped } }) {
  const elsewhere = waiting > skipped;
  const leased = elsewhere ? "The remaining parts are leased to other sessions for up to five minutes. " : "";
  setText(byId("empty-title"), exhausted ? emptyTitle(elsewhere, skipped) : "Loading …");
  setText(byId("empty-text"), exhausted ? `${leased}This page refreshes automatically.` : "");
  setText(byId("show-skipped"), skipped === 1 ? "Show the skipped part" : `Show the ${skipped} skipped parts`);
  byId("show-skipped").hidden = !exhausted || !skipped;
}

function emptyTitle(elsewhere, skipped) {
  if (elsewhere) return "Nothing to review in this session";
  return skipped ? "Nothing else to review" : "Nothing to review";
}
