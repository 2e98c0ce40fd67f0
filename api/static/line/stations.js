// The station filter, and notices about stations.

import { byId, createElement } from "../shared/dom.js";
import { translate, translateCount } from "../shared/language.js";
import { addressOf } from "./side_by_side.js";
import { formatDuration } from "./clock.js";
import { stationName } from "./format.js";

const MAX_SIDE_BY_SIDE = 6;
const MAX_OFFERED = 100; // stations in the list, as many as an answer has; others are found by a search
const MAX_NOTICES = 6;
const ALL = "all";
const PREFIX = "="; // prefix of station names in option values: a name may be empty or equal to ALL

/** The station in the URL; null = all. */
export function stationInAddress() {
  return new URLSearchParams(location.search).get("station");
}

export class Stations {
  /**
   * Calls `onChoose(station)` when the user chooses one; null = all. `find(text)` resolves to the stations whose name
   * contains a text.
   */
  constructor(onChoose, find) {
    Object.assign(this, { find, found: null }); // found: by the search; null without one
    this.select = byId("stations");
    this.search = byId("station-search");
    this.chosen = stationInAddress();
    this.search.addEventListener("input", () => this.#searchFor(this.search.value.trim()));
    this.select.addEventListener("change", () => {
      this.chosen = this.select.value === ALL ? null : this.select.value.slice(PREFIX.length);
      const address = new URL(location.href);
      if (this.chosen === null) address.searchParams.delete("station");
      else address.searchParams.set("station", this.chosen);
      history.replaceState(null, "", address);
      onChoose(this.chosen);
    });
    byId("side-by-side").addEventListener("click", () => location.assign(addressOf(this.sideBySide)));
    this.fill([]);
  }

  /** Offers `names` or those that the search found, and the chosen station even if it is not among them. */
  fill(names) {
    this.names = names;
    this.sideBySide = names.slice(0, MAX_SIDE_BY_SIDE);
    byId("side-by-side").hidden = this.chosen !== null || names.length < 2;
    this.search.hidden = names.length < MAX_OFFERED;
    const first = (this.found ?? names).slice(0, MAX_OFFERED);
    const offered = this.chosen === null || first.includes(this.chosen) ? first : [this.chosen, ...first];
    const options = [[ALL, translate("All")], ...offered.map((name) => [PREFIX + name, stationName(name)])];
    this.#offer(options, first.length === MAX_OFFERED);
    this.select.value = this.chosen === null ? ALL : PREFIX + this.chosen;
  }

  /** Shows the stations that contain a text; all without one. */
  async #searchFor(text) {
    const found = text ? await this.find(text).catch(() => null) : null;
    if (this.search.value.trim() !== text) return; // the user has typed more
    this.found = found;
    this.fill(this.names);
  }

  /** Replaces the options [value, text] of the list if they differ; `hasMore`: there may be further stations. */
  #offer(options, hasMore) {
    const shown = JSON.stringify([options, hasMore]);
    if (this.select.dataset.shown === shown) return;
    this.select.dataset.shown = shown;
    this.select.replaceChildren(...options.map(([value, text]) => new Option(text, value)));
    if (!hasMore) return;
    const more = new Option(translate("Further stations: search for them"), "");
    more.disabled = true;
    this.select.append(more);
  }
}

/** Notices about stations without recent inspections. */
export function silenceNotices(quiet, clock) {
  return quiet.map(({ station, last_at: lastAt, usual_gap_s: gap }) => {
    const usual = gap < 2 ? translate("every second") : translate("every {duration}", { duration: formatDuration(gap) });
    const values = { duration: formatDuration(clock.since(lastAt)), time: clock.time(lastAt), usual };
    return ["silent", stationName(station), translate("no inspections for {duration}, since {time}; usually {usual}", values)];
  });
}

/**
 * Shows notices [kind, name, text, station], the first ones and the number of the others. Those with a station have a
 * button that calls `onOpen(station)`.
 */
export function showNotices(notices, onOpen) {
  const list = byId("notices");
  const first = notices.slice(0, MAX_NOTICES);
  const others = notices.length - first.length;
  const shown = JSON.stringify([first, others]);
  if (list.dataset.shown === shown) return;
  list.dataset.shown = shown;
  const focused = list.contains(document.activeElement) ? document.activeElement.dataset.station : undefined;
  list.replaceChildren(...first.map((notice) => noticeItem(notice, onOpen)));
  if (focused !== undefined) [...list.querySelectorAll("button")].find((button) => button.dataset.station === focused)?.focus();
  if (others) list.append(createElement("li", "", translateCount(others, "{count} more notice", "{count} more notices")));
}

function noticeItem([kind, name, text, station], onOpen) {
  const item = createElement("li", kind, createElement("strong", "", name), ` ${text} `);
  if (station === undefined) return item;
  const button = createElement("button", "", translate("Show photographs"));
  button.type = "button";
  button.dataset.station = station;
  button.addEventListener("click", () => onOpen(station));
  item.append(button);
  return item;
}
