// Names of people, as the service stores them.

import { sentence, translateSentences } from "./sentence.js";

const UNKNOWN = [sentence("unknown person at {address}")];

/** Who did something; a person who has not logged in is known by the address alone. */
export function personText(name) {
  return translateSentences(name, UNKNOWN);
}
