// What a check of the labelled photographs has found.

import { attempt } from "../shared/attempt.js";
import { byId, createElement, setText } from "../shared/dom.js";
import { whoCan } from "../shared/empty_state.js";
import { translate, translateCount } from "../shared/language.js";
import { timeText } from "../shared/plant_time.js";

const REFRESH_MS = 1500;
const MAX_NAMES = 4;

const KINDS = {
  problem: translate("Cannot be used"),
  equal: translate("Equal photographs"),
  near_duplicates: translate("Almost equal photographs"),
  size: translate("Unusual size"),
  one_colour: translate("One colour"),
};

export class Findings {
  /** Calls `onShow(ids)` to show the photographs of a finding. */
  constructor(id, requests, onShow) {
    Object.assign(this, { id, requests, onShow, waiting: null });
    byId("check").after(whoCan(translate("Check photographs"), "engineer"));
    byId("check").addEventListener("click", () => this.#start());
  }

  /** Shows the latest check, and again while it is running. */
  async load() {
    clearTimeout(this.waiting);
    try {
      const check = await this.requests.check(this.id);
      if (check) this.#show(check);
    } catch {
      this.#wait(); // the next request may succeed
    }
  }

  async #start() {
    const check = await attempt(this.requests.credentials, () => this.requests.startCheck(this.id));
    if (check) this.#show(check);
  }

  #show(check) {
    setText(byId("check-state"), stateText(check));
    byId("check").disabled = check.state === "running";
    byId("findings").replaceChildren(...check.findings.map((finding) => this.#entry(finding)));
    if (check.state === "running") this.#wait();
  }

  #wait() {
    this.waiting = setTimeout(() => this.load(), REFRESH_MS);
  }

  #entry({ kind, photographs, text }) {
    const names = photographs.slice(0, MAX_NAMES).map(({ name }) => name).join(", ");
    const more = photographs.length - MAX_NAMES;
    const button = createElement("button", "", KINDS[kind] ?? kind);
    Object.assign(button, { type: "button", title: text, disabled: !photographs.length });
    button.addEventListener("click", () => this.onShow(photographs.map(({ id }) => id)));
    const listed = more > 0 ? `${names}, ${translate("and {count} more", { count: more })}` : names;
    const about = kind === "problem" || kind === "size" ? [createElement("p", "hint", text)] : [];
    return createElement("li", "", button, createElement("span", "names", listed), ...about);
  }
}

function stateText({ state, error, found, checked, finished_at: finished }) {
  if (state === "running") return translateCount(checked, "{count} photograph is being checked …", "{count} photographs are being checked …");
  if (state === "failed") return `${translate("Failed")}: ${error}`;
  const findings = translateCount(found, "{count} finding", "{count} findings");
  return `${findings}, ${timeText(finished)}`;
}
