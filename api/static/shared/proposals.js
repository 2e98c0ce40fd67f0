// Labels that a model proposes for the photographs without one: by a chosen model, or by one that is trained for it.

import { createElement, setText } from "./dom.js";
import { whoCan } from "./empty_state.js";
import { translate, translateCount } from "./language.js";
import { timeText } from "./plant_time.js";

const RUN_MS = 1000; // between two requests while a model proposes
const TRAINING_MS = 4000; // while it is trained
const UNFINISHED = ["queued", "leased", "running"]; // states of a training

export class Proposals {
  /**
   * Fills `place`. `attempt(act)` runs a request of the user and shows its error; `onRun(run)` gets the latest run, or
   * null, whenever it has changed.
   */
  constructor(place, requests, { attempt, onRun = () => {} }) {
    Object.assign(this, { requests, attempt, onRun, run: null, training: null, models: [], waiting: null });
    place.append(...this.#makeParts());
    this.propose.addEventListener("click", () => this.#start());
    this.train.addEventListener("click", () => this.#train());
  }

  /** Shows the current state, and again while a model is trained or proposes. */
  async load() {
    clearTimeout(this.waiting);
    const before = this.run;
    try {
      [this.run, this.training] = await Promise.all([this.requests.run(), this.requests.training()]);
      const isOther = this.run?.started_at !== before?.started_at || this.run?.state !== before?.state;
      if (isOther || !this.models.length) this.#offer(await this.requests.models());
      if (isOther) this.onRun(this.run);
    } catch {
      this.#wait(TRAINING_MS); // the next request may succeed
      return;
    }
    this.#show();
  }

  #makeParts() {
    this.select = createElement("select", "");
    this.select.id = "proposing-model";
    this.select.translate = false;
    this.propose = makeButton("propose", translate("Propose labels"));
    this.train = makeButton("propose-rest", translate("Propose the rest from these labels"));
    this.choice = createElement("div", "model-choice", createElement("label", "", translate("Model"), this.select), this.propose);
    this.bar = createElement("progress", "");
    this.bar.id = "proposals-bar";
    this.bar.setAttribute("aria-label", translate("Progress"));
    this.state = makeText("proposals-state", "");
    this.problem = makeText("proposals-problem", "hint");
    this.trainingState = makeText("proposals-training", "");
    this.trainingLink = createElement("a", "");
    this.trainingLink.id = "proposals-job";
    this.need = makeText("proposals-need", "hint");
    for (const part of [this.choice, this.train, this.need]) part.dataset.needs = "engineer";
    this.state.setAttribute("role", "status");
    this.trainingState.setAttribute("role", "status");
    const parts = [this.choice, this.train, this.need, this.trainingState, this.trainingLink, this.bar, this.state, this.problem];
    for (const part of parts) part.hidden = true; // until the models are known
    return [...parts, whoCan(translate("Propose labels"), "engineer")];
  }

  /** Offers the models; the choice of the user stays. */
  #offer(models) {
    const chosen = this.models.length && this.select.value;
    this.models = models;
    this.select.replaceChildren(...models.map((model) => new Option(modelText(model), keyOf(model))));
    if (models.some((model) => keyOf(model) === chosen)) this.select.value = chosen;
  }

  async #start() {
    const model = this.models[this.select.selectedIndex];
    if (await this.attempt(() => this.requests.start(model))) await this.load();
  }

  async #train() {
    if (await this.attempt(() => this.requests.train())) await this.load();
  }

  #show() {
    const { run, training } = this;
    const { latest, unlabelled } = training;
    const runs = run?.state === "running";
    const trains = latest !== null && UNFINISHED.includes(latest.job_state);
    const isReady = Math.min(training.good_parts, training.defective_parts) >= training.needed_parts;
    this.choice.hidden = !this.models.length;
    this.propose.disabled = runs || !unlabelled;
    this.train.hidden = trains || !unlabelled || !isReady;
    this.train.classList.toggle("primary", !run && !this.models.some(({ training_job: job }) => job !== null));
    this.train.disabled = runs;
    const hint = isReady ? translate("A model is trained for two minutes. It is not put into use.") : needText(training);
    showText(this.need, trains || !unlabelled ? "" : hint);
    const text = isCurrent(latest, run) ? trainingText(latest) : "";
    showText(this.trainingState, text);
    this.trainingLink.hidden = !text;
    if (text) {
      setText(this.trainingLink, translate("Show the training"));
      this.trainingLink.href = `train?job=${latest.training_job}`;
    }
    showText(this.state, run ? stateText(run) : "");
    Object.assign(this.bar, { max: run?.photographs ?? 1, value: run?.done ?? 0, hidden: !runs });
    showText(this.problem, run?.left_out ? leftOutText(run) : "");
    const isDue = latest?.state === "waiting" && latest.job_state === "done";
    if (runs || isDue) this.#wait(RUN_MS);
    else if (trains) this.#wait(TRAINING_MS);
  }

  #wait(ms) {
    clearTimeout(this.waiting);
    this.waiting = setTimeout(() => this.load(), ms);
  }
}

function makeButton(id, text) {
  const button = createElement("button", "", text);
  Object.assign(button, { id, type: "button" });
  return button;
}

function makeText(id, className) {
  const text = createElement("p", className);
  text.id = id;
  return text;
}

/** Shows a text, or hides its element if it is empty. */
function showText(element, text) {
  setText(element, text);
  element.hidden = !text;
}

function keyOf({ model, version, training_job: job }) {
  return `${job ?? ""}/${model}/${version}`;
}

function modelText({ model, version, training_job: job, ended_at: ended, aliases }) {
  const use = aliases.length ? translate("in use") : translate("not in use");
  const name = `${model} ${version}, ${use}`;
  return job === null ? name : translate("{model}, trained {time}", { model: name, time: timeText(ended) });
}

/** Whether the latest training for proposals still says something: no later run has replaced its proposals. */
function isCurrent(latest, run) {
  if (!latest) return false;
  return UNFINISHED.includes(latest.job_state) || !run || run.started_at < latest.ordered_at;
}

function needText({ needed_parts: needed, good_parts: good, defective_parts: defective }) {
  return translate("For proposals from these labels, label {needed} good and {needed} defective parts. So far: {good} good, {defective} defective.", {
    needed,
    good,
    defective,
  });
}

function trainingText({ training_job: id, job_state: jobState, state, error, reason }) {
  if (state === "failed") return translate("Training {id} is done, but nothing was proposed: {reason}", { id, reason: error });
  if (jobState === "cancelled") return translate("Training {id} was cancelled, so nothing is proposed.", { id });
  if (jobState === "failed") return translate("Training {id} failed, so nothing is proposed: {reason}", { id, reason: reason ?? "" });
  if (jobState === "queued") return translate("Training {id} waits for a worker. Labels are proposed when it is done; you can close this page.", { id });
  if (jobState === "done") return state === "waiting" ? translate("Training {id} is done. The proposals start.", { id }) : "";
  return translate("Training {id} runs. Labels are proposed when it is done; you can close this page.", { id });
}

function leftOutText({ left_out: count, problem }) {
  return translateCount(count, "{count} photograph left out: {problem}", "{count} photographs left out, the first one: {problem}", { problem });
}

function stateText({ state, error, done, photographs, proposed, model, version, finished_at: finished }) {
  const name = `${model} ${version}`;
  if (state === "running") return translateCount(photographs, "{model}: {done} of {count} photograph …", "{model}: {done} of {count} photographs …", { model: name, done });
  const count = translateCount(proposed, "{count} label proposed by {model}", "{count} labels proposed by {model}", { model: name });
  return state === "failed" ? `${count}. ${translate("Failed")}: ${error}` : `${count}, ${timeText(finished)}`;
}
