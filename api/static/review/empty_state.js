// What stands in place of a picture where there is none.

import { byId } from "../shared/dom.js";

/** Says whether nothing waits for this page, or whether it is still being looked for. */
export function showEmptyState({ exhausted, waiting, skipped: { length } }) {
  const others = waiting > length ? "The rest is open elsewhere, or was in the last five minutes. " : "";
  write("blank-title", exhausted ? title(others, length) : "Looking …");
  write("blank-words", exhausted ? `${others}This page looks again by itself.` : "");
  write("show-skipped", length === 1 ? "Show the skipped one" : `Show the ${length} skipped ones`);
  byId("show-skipped").hidden = !exhausted || !length;
}

function title(others, skipped) {
  if (others) return "Nothing left for you";
  return skipped ? "Nothing else waits" : "Nothing waits";
}

/** Leaves the same words alone, which would be read out again. */
function write(id, words) {
  if (byId(id).textContent !== words) byId(id).textContent = words;
}
