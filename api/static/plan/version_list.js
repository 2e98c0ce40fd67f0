// The stored versions of plans for a model, and where they are active.

import { byId, createElement } from "../shared/dom.js";
import { translate } from "../shared/language.js";
import { timeText } from "../shared/plant_time.js";
import { button } from "./fields.js";

export class VersionList {
  /** Calls `onOpen(version)`, `onActivate({version, name})`, `onDeactivate(station)` and `onMore()` for the next page. */
  constructor({ onOpen, onActivate, onDeactivate, onMore }) {
    Object.assign(this, { onOpen, onActivate, onDeactivate, plans: [] });
    byId("more-versions").addEventListener("click", onMore);
  }

  /** Shows a page of versions after those of `former` pages. */
  show({ plans, next_before: nextBefore }, former = []) {
    this.plans = [...former, ...plans];
    this.nextBefore = nextBefore;
    byId("more-versions").hidden = nextBefore === null;
    byId("no-versions").hidden = this.plans.length > 0;
    byId("versions").replaceChildren(...this.plans.map((plan) => this.#item(plan)));
  }

  #item(stored) {
    const { version, name, author, reason, created_at: at, stations } = stored;
    const title = createElement("strong", "", translate("Version {version}: {name}", { version, name }));
    const origin = author ? translate("{name}, {time}", { name: author, time: timeText(at) }) : timeText(at);
    const active = stations.map((station) => createElement("p", "active", `${translate("Active: {station}", { station: stationText(station) })} `, this.#deactivateButton(station)));
    const activate = button(`activate-${version}`, translate("Activate …"), () => this.onActivate(stored));
    activate.dataset.needs = "engineer";
    const buttons = createElement("div", "buttons", button(`open-${version}`, translate("Open"), () => this.onOpen(version)), activate);
    return createElement("li", "", title, createElement("p", "hint", origin), createElement("p", "", reason), ...active, buttons);
  }

  #deactivateButton(station) {
    const end = button(`deactivate-${station}`, translate("Deactivate …"), () => this.onDeactivate(station));
    end.dataset.needs = "engineer";
    return end;
  }
}

/** The text of a station of an active plan. */
export function stationText(station) {
  return station || translate("the stations without a plan of their own");
}
