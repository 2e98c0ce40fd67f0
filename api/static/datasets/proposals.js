// Labels that a model proposes for the photographs without one.

import { attempt } from "../shared/attempt.js";
import { byId, setText } from "../shared/dom.js";
import { translate, translateCount } from "../shared/language.js";
import { timeText } from "../shared/plant_time.js";

const REFRESH_MS = 1000;
const NEVER_PROPOSED = 404;

export class Proposals {
  constructor(id, requests) {
    Object.assign(this, { id, requests, waiting: null });
    byId("propose").addEventListener("click", () => this.#start());
  }

  /** Shows the latest run, and again while it is in progress. */
  async load() {
    clearTimeout(this.waiting);
    try {
      this.#show(await this.requests.proposals(this.id));
    } catch (error) {
      if (error.status !== NEVER_PROPOSED) this.#wait(); // the next request may succeed
    }
  }

  async #start() {
    const run = await attempt(this.requests.credentials, () => this.requests.startProposals(this.id));
    if (run) this.#show(run);
  }

  #show(run) {
    const { state, done, photographs, problem, left_out: leftOut } = run;
    const isRunning = state === "running";
    setText(byId("proposals-state"), stateText(run));
    Object.assign(byId("proposals-bar"), { max: photographs, value: done, hidden: !isRunning });
    const text = leftOut ? translateCount(leftOut, "{count} photograph left out: {problem}", "{count} photographs left out, the first one: {problem}", { problem }) : "";
    setText(byId("proposals-problem"), text);
    byId("proposals-problem").hidden = !text;
    byId("propose").disabled = isRunning;
    if (isRunning) this.#wait();
  }

  #wait() {
    this.waiting = setTimeout(() => this.load(), REFRESH_MS);
  }
}

function stateText({ state, error, done, photographs, proposed, model, version, finished_at: finished }) {
  const name = `${model} ${version}`;
  if (state === "running") return translateCount(photographs, "{model}: {done} of {count} photograph …", "{model}: {done} of {count} photographs …", { model: name, done });
  const count = translateCount(proposed, "{count} label proposed by {model}", "{count} labels proposed by {model}", { model: name });
  return state === "failed" ? `${count}. ${translate("Failed")}: ${error}` : `${count}, ${timeText(finished)}`;
}
