// Requests whose errors the page shows.

import { byId, setText } from "./dom.js";

/** Runs a request and shows its error in `#problem`; returns its result, or null. `credentials` decide on "Forget key". */
export async function attempt(credentials, ask) {
  byId("problem").hidden = true;
  try {
    return await ask();
  } catch (error) {
    setText(byId("problem"), error.message);
    byId("problem").hidden = false;
    byId("problem").scrollIntoView({ block: "nearest" });
    return null;
  } finally {
    byId("forget-key").hidden = !credentials.key;
  }
}
