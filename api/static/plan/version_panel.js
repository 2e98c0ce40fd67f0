// The stored versions of plans for a model: they are stored, opened and activated.

import { byId, createElement } from "../shared/dom.js";
import { translate } from "../shared/language.js";
import { timeText } from "../shared/plant_time.js";
import { button } from "./fields.js";
import { askReason } from "./dialogs.js";

export class VersionPanel {
  /**
   * `run(ask)` resolves to the answer of a request about the chosen model, `ask(name)`, or null. `draft` is a PlanDraft;
   * `simulationText(plan)` says what was simulated, `isReady()` whether all fields are valid.
   */
  constructor(requests, { run, draft, simulationText, isReady }) {
    Object.assign(this, { requests, run, draft, simulationText, isReady, plans: [], isAsking: false });
    byId("more-versions").addEventListener("click", () => this.#loadMore());
    byId("store").addEventListener("click", () => this.#ask(() => this.#store()));
  }

  /** Shows no version. */
  clear() {
    this.#show({ plans: [], next_before: null });
  }

  /** Loads the newest versions; returns those that are active, [{station, version}]. */
  async load() {
    const loaded = await this.run(async (name) => [await this.requests.plans(name), await this.requests.activePlans(name)]);
    if (!loaded) return [];
    const [page, active] = loaded;
    this.#show(page);
    byId("help").open ||= !page.plans.length;
    byId("fixed").hidden = page.can_store;
    byId("store").hidden = !page.can_store;
    return active;
  }

  /** Makes a version the draft. */
  async open(version) {
    const stored = await this.run((name) => this.requests.plan(name, version));
    if (stored) this.draft.open(stored.plan, version);
  }

  async #loadMore() {
    const page = await this.run((name) => this.requests.plans(name, this.nextBefore));
    if (page) this.#show(page, this.plans);
  }

  #show({ plans, next_before: nextBefore }, former = []) {
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
    const active = stations.map((station) => createElement("p", "active", `${activeText(station)} `, this.#changeButton(`deactivate-${station}`, translate("Deactivate …"), () => this.#deactivate(station))));
    const activate = this.#changeButton(`activate-${version}`, translate("Activate …"), () => this.#activate(stored));
    const buttons = createElement("div", "buttons", button(`open-${version}`, translate("Open"), () => this.open(version)), activate);
    return createElement("li", "", title, createElement("p", "hint", origin), createElement("p", "", reason), ...active, buttons);
  }

  #changeButton(id, text, act) {
    const made = button(id, text, () => this.#ask(act));
    made.dataset.needs = "engineer";
    return made;
  }

  /** Runs an action with a dialog, unless there is another one. */
  async #ask(act) {
    if (this.isAsking) return;
    this.isAsking = true;
    await act().finally(() => (this.isAsking = false));
  }

  async #store() {
    if (!this.isReady()) return;
    const { plan } = this.draft;
    const page = await this.run((name) => this.requests.plans(name));
    if (!page) return;
    const [newest] = page.plans;
    const lines = [translate("A stored version never changes. It decides only after somebody activates it.")];
    if (newest) lines.push(translate("The newest version is {version}, by {name}: {reason}", { version: newest.version, name: newest.author || "–", reason: newest.reason }));
    const answer = await askReason(translate("Store as a new version"), [...lines, this.simulationText(plan)]);
    const stored = answer && (await this.run((name) => this.requests.store(name, plan, answer.reason)));
    if (!stored) return;
    this.draft.markStored(plan, stored.version);
    await this.load();
  }

  async #activate({ version, name }) {
    const asked = await this.run(async (of) => [await this.requests.activePlans(of), await this.requests.names()]);
    if (!asked) return;
    const [active, { stations }] = asked;
    const lines = [
      translate("Version {version} ({name}) decides about photographs that arrive from now on.", { version, name }),
      ...active.map((plan) => translate("Now active for {station}: version {version}.", { station: stationText(plan.station), version: plan.version })),
      this.simulationText(this.draft.version === version ? this.draft.plan : null),
    ];
    const answer = await askReason(translate("Activate version {version}", { version }), lines, { stations: stations.filter(Boolean) });
    if (answer) await this.#change(version, answer.station, answer.reason);
  }

  async #deactivate(station) {
    const text = station
      ? translate("Photographs of this station are judged by the plan for all stations; without one, any defect makes a part defective.")
      : translate("Stations without a plan of their own then have none: any defect makes a part defective.");
    const answer = await askReason(translate("Deactivate the plan"), [activeText(station), text]);
    if (answer) await this.#change(null, station, answer.reason);
  }

  async #change(version, station, reason) {
    if (await this.run((name) => this.requests.activate(name, version, station, reason))) await this.load();
  }
}

function activeText(station) {
  return translate("Active: {station}", { station: stationText(station) });
}

function stationText(station) {
  return station || translate("the stations without a plan of their own");
}
