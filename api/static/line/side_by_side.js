// Several stations side by side: each is a display of its own.

import { createElement } from "../shared/dom.js";
import { askForCredentials } from "../shared/credentials_prompt.js";
import { Credentials } from "../shared/credentials.js";
import { request } from "../shared/service.js";
import { stationName } from "./format.js";

/** Replaces the page by a display for each station; asks for a key or a log-in once for all of them. */
export async function showSideBySide(stations) {
  await request("v1/line", { credentials: new Credentials(askForCredentials) }).catch(() => {}); // each display shows its own errors
  const displays = [...new Set(stations)].map((station) => {
    const frame = createElement("iframe", "");
    frame.title = stationName(station);
    frame.src = addressOf([station]);
    frame.allow = "autoplay";
    return frame;
  });
  document.body.className = "side-by-side";
  document.body.replaceChildren(...displays);
}

/** The address of this page for other stations. */
export function addressOf(stations) {
  const query = new URLSearchParams(location.search);
  query.delete("station");
  for (const station of stations) query.append("station", station);
  return `${location.pathname}?${query}`;
}
