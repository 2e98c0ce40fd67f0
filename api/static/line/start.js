// Starts the display of one station or of all, or of several side by side.

import "../shared/language.js";
import { logInByLink } from "../shared/session.js";

const token = new URLSearchParams(location.hash.slice(1)).get("log-in");
if (token) {
  history.replaceState(null, "", location.pathname + location.search);
  await logInByLink(token); // if it fails, the display asks for a log-in
}

const stations = new URLSearchParams(location.search).getAll("station");
if (stations.length > 1) {
  const { showSideBySide } = await import("./side_by_side.js");
  await showSideBySide(stations);
} else {
  await import("./line.js");
}
