// The station filter, and notices about stations.

import { byId, createElement } from "../shared/dom.js";
import { translate } from "../shared/language.js";
import { addressOf } from "./side_by_side.js";
import { formatDuration } from "./clock.js";
import { stationName } from "./format.js";

const MAX_SIDE_BY_SIDE = 6;
const ALL = "all";
const PREFIX = "="; // prefix of station names in option values: a name may be empty or equal to ALL

/** The station in the URL; null = all. */
export function stationInAddress() {
  return new URLSearchParams(location.search).get("station");
}

export class Stations {
  /** Calls `onChoose(station)` when the user chooses one; null = all. */
  constructor(onChoose) {
    this.select = byId("stations");
    this.chosen = stationInAddress();
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

  /** Offers `names`, and the chosen station even if it is not among them. */
  fill(names) {
    this.sideBySide = names.slice(0, MAX_SIDE_BY_SIDE);
    byId("side-by-side").hidden = this.chosen !== null || names.length < 2;
    const offered = this.chosen === null || names.includes(this.chosen) ? names : [this.chosen, ...names];
    const values = [ALL, ...offered.map((name) => PREFIX + name)];
    if (values.join("\n") !== [...this.select.options].map((option) => option.value).join("\n")) {
      this.select.replaceChildren(...values.map((value) => new Option(value === ALL ? translate("All") : stationName(value.slice(PREFIX.length)), value)));
    }
    this.select.value = this.chosen === null ? ALL : PREFIX + this.chosen;
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

/** Shows notices [kind, station, text]. */
export function showNotices(notices) {
  const list = byId("notices");
  if (list.dataset.shown === JSON.stringify(notices)) return;
  list.dataset.shown = JSON.stringify(notices);
  list.replaceChildren(...notices.map(([kind, name, text]) => createElement("li", kind, createElement("strong", "", name), ` ${text}`)));
}
