// Which station is shown, and which ones are silent.

import { byId } from "../shared/dom.js";
import { formatDuration } from "./clock.js";
import { make, stationName, part } from "./format.js";

const ALL = "all";
const PREFIX = "="; // before the names: one may be empty, or called like the choice of all

/** The station that the address names; null = all. */
export function stationInAddress() {
  return new URLSearchParams(location.search).get("station");
}

export class Stations {
  /** `onChoose(station)` is told which one somebody chose; null = all. */
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
    this.fill([]);
  }

  /** Offers `names`, and the chosen one also where it is none of them. */
  fill(names) {
    const offered = this.chosen === null || names.includes(this.chosen) ? names : [this.chosen, ...names];
    const values = [ALL, ...offered.map((name) => PREFIX + name)];
    if (values.join("\n") !== [...this.select.options].map((option) => option.value).join("\n")) {
      this.select.replaceChildren(...values.map((value) => new Option(value === ALL ? "All" : stationName(value.slice(PREFIX.length)), value)));
    }
    this.select.value = this.chosen === null ? ALL : PREFIX + this.chosen;
  }
}

/** Lists stations that went quiet. */
export function showSilentStations(quiet, clock) {
  const told = quiet.map(({ station, last_at: lastAt, usual_gap_s: gap }) => {
    const usual = gap < 2 ? "every second" : `every ${formatDuration(gap)}`;
    return [stationName(station), `quiet for ${formatDuration(clock.since(lastAt))}, since ${clock.time(lastAt)}; usually ${usual}`];
  });
  const list = byId("quiet");
  if (list.dataset.told === JSON.stringify(told)) return;
  list.dataset.told = JSON.stringify(told);
  list.replaceChildren(...told.map(([name, words]) => make("li", "", make("strong", "", name), ` ${words}`)));
}
