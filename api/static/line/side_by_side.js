// Several stations side by side: each is a display of its own.

import { createElement } from "../shared/dom.js";
import { stationName } from "./format.js";

/** Replaces the page by a display for each station. */
export function showSideBySide(stations) {
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
