// One training: its state, curves, predictions, log and result.

import { confirm } from "../shared/confirmation.js";
import { byId, createElement, setText } from "../shared/dom.js";
import { isMissing, showMissing } from "../shared/empty_state.js";
import { formatDecimals, formatNumber, translate, translateCount } from "../shared/language.js";
import { timeText } from "../shared/plant_time.js";
import { saveFile } from "../shared/save_file.js";
import { Comparison } from "./comparison.js";
import { Curves } from "./curves.js";
import { durationText, completedShare, isEnded, ratingText, stateText } from "./job_text.js";

const MAX_LINES = 2000;

export class JobDetail {
  /** Calls `onChanged()` after an action; `run(act)` runs a request and shows its error. */
  constructor(id, requests, { run, onChanged }) {
    Object.assign(this, { id, requests, run, onChanged });
    this.curves = new Curves();
    this.comparison = new Comparison(requests, run);
    this.after = 0; // the last event
    this.lines = [];
    this.panelStep = null; // position of the training at which the picture was fetched
    byId("report").href = `v1/training/jobs/${id}/report`;
    byId("report").addEventListener("click", (event) => this.#openReport(event));
    byId("embedded").addEventListener("toggle", () => this.#embedReport());
  }

  /** Fetches what has changed; returns whether the training has ended or does not exist. */
  async refresh() {
    const job = await this.requests.job(this.id).catch(showProblem);
    if (!job) return true;
    byId("detail").hidden = false;
    this.#showState(job);
    this.#showOutcome(job);
    await this.#readEvents();
    await this.#showPanel(job);
    if (job.state === "done") await this.comparison.offer(job);
    return isEnded(job);
  }

  #showState(job) {
    setText(byId("job-name"), `${job.model} ${job.version}`);
    setText(byId("job-state"), stateText(job));
    byId("job-state").dataset.state = job.state;
    const share = completedShare(job);
    byId("job-progress").hidden = share === null;
    byId("job-progress").value = share ?? 0;
    setText(byId("job-reason"), job.reason ?? "");
    this.#showFacts(job);
    this.#showButtons(job);
  }

  #showFacts(job) {
    const { progress, settings, checkpoint } = job;
    const left = progress?.elapsed_s === undefined ? null : Math.max(0, 60 * settings.minutes - progress.elapsed_s);
    const facts = [
      [translate("Data set"), dataSetLink(job)],
      [translate("Ordered"), `${timeText(job.created_at)}${job.created_by ? ` · ${job.created_by}` : ""}`],
      [translate("Steps"), settings.all_steps && (progress?.of_steps ? `${formatNumber(progress.steps)} / ${formatNumber(progress.of_steps)}` : translate("all"))],
      [translate("Time limit"), translate("{minutes} min", { minutes: formatNumber(settings.minutes) })],
      [translate("Position"), progress?.stage && translate("stage {stage}, step {step}", { stage: progress.stage, step: formatNumber(progress.step) })],
      [translate("Photographs fetched"), progress?.of_photographs && `${formatNumber(progress.photographs)} / ${formatNumber(progress.of_photographs)}`],
      [translate("Time left, at most"), job.state === "running" && left !== null && (left > 0 ? durationText(left) : translate("none: the model is evaluated"))],
      [translate("Checkpoint"), checkpoint && `${checkpoint.position} · ${timeText(checkpoint.at)}`],
      [translate("In the folder of models"), job.used && `${timeText(job.used.at)} · ${job.used.who}`],
    ];
    showFacts(byId("job-facts"), facts.filter(([, text]) => text));
  }

  #showButtons(job) {
    const buttons = [];
    if (job.state === "running" && !job.request) buttons.push(this.#button(translate("End with the best weights so far"), "stop"));
    if (!isEnded(job) && job.request !== "cancel") buttons.push(this.#cancelButton(job));
    if (job.state === "failed") buttons.push(this.#button(translate("Continue"), "continue"));
    if (job.state === "done" && !job.used) buttons.push(this.#button(translate("Use the model"), "use", "primary"));
    if (job.used) {
      buttons.push(linkButton(translate("Inspect a photograph"), `./?${new URLSearchParams({ model: job.model })}`, "primary"), linkButton(translate("Open Models"), "models"));
    }
    if (isEnded(job)) buttons.push(this.#deleteButton(job));
    byId("job-buttons").replaceChildren(...buttons);
  }

  #deleteButton({ model, version, used }) {
    const text = translate("The log, the checkpoint, the model and the report of {model} {version} are deleted.", { model, version });
    const stays = used ? translate("The model in the folder of models stays.") : "";
    return makeButton(translate("Delete"), "", async () => {
      if (!(await confirm(translate("Delete the training"), `${text} ${stays}`))) return;
      await this.run(async () => {
        await this.requests.delete(this.id);
        location.href = "train";
      });
    });
  }

  /** A training that runs is cancelled after a question: it leaves no model. */
  #cancelButton({ model, version, state }) {
    const cancel = () => this.run(() => this.#change("cancel"));
    if (state === "queued") return makeButton(translate("Cancel"), "", cancel);
    const text = translate("{model} {version} ends now; what it has learned so far cannot be used.", { model, version });
    return makeButton(translate("Cancel"), "", async () => (await confirm(translate("End without a model"), text)) && cancel());
  }

  #button(text, action, className = "") {
    const button = makeButton(text, className, () => this.run(async () => {
      button.disabled = true;
      if (action === "use") setText(button, translate("Loading …")); // a model loads for seconds
      try {
        await this.#change(action);
      } finally {
        button.disabled = false; // after an error: otherwise the button is replaced
        setText(button, text);
      }
    }));
    return button;
  }

  async #change(action) {
    await this.requests.change(this.id, action);
    await this.onChanged();
  }

  #showOutcome({ outcome }) {
    byId("outcome").hidden = !outcome;
    if (!outcome) return;
    byId("embedded").hidden = Boolean(this.requests.credentials.key); // a frame cannot send a key
    const { rating, metrics = {}, warnings = [] } = outcome;
    byId("rating").dataset.level = rating?.level ?? "";
    byId("rating").replaceChildren(
      createElement("strong", "", rating ? ratingText(rating.level) : translate("not rated")),
      ...[rating?.reason, ...(rating?.advice ?? []), ...warnings].filter(Boolean).map((sentence) => createElement("p", "", sentence)),
    );
    const { good, defective, false_positives: alarms, false_negatives: missed } = metrics;
    const facts = [
      [translate("Missed defects"), shareText(missed, defective), missed],
      [translate("False alarms"), shareText(alarms, good), alarms],
      ["AP", formatDecimals(metrics.average_precision ?? 0, 3), metrics.average_precision],
      ["AUROC", formatDecimals(metrics.auroc ?? 0, 3), metrics.auroc],
      [translate("IoU of masks"), formatDecimals(metrics.pixel_iou ?? 0, 3), metrics.pixel_iou],
    ];
    showFacts(byId("metrics"), facts.filter(([, , value]) => value !== undefined && value !== null));
  }

  async #readEvents() {
    for (let more = true; more; ) {
      const { events, next_after: next } = await this.requests.events(this.id, this.after);
      this.after = events.at(-1)?.id ?? this.after;
      const contents = (kind) => events.filter((event) => event.kind === kind).map(({ content }) => content);
      this.curves.add(contents("metrics"));
      this.#addLines(contents("output").flat());
      byId("states").append(...events.filter(({ kind }) => kind === "state").map(({ at, content }) => createElement("li", "", createElement("time", "", timeText(at)), ` ${content}`)));
      more = next !== null;
    }
  }

  #addLines(lines) {
    if (!lines.length) return;
    const output = byId("output");
    const atEnd = output.scrollTop + output.clientHeight >= output.scrollHeight - 20;
    this.lines = [...this.lines, ...lines].slice(-MAX_LINES);
    output.replaceChildren(...this.lines.map((line) => createElement("span", "", line)));
    if (atEnd) output.scrollTop = output.scrollHeight;
  }

  async #showPanel({ has_panel: hasPanel, progress, state }) {
    const step = `${state} ${progress?.stage} ${progress?.step}`;
    if (!hasPanel || step === this.panelStep) return;
    this.panelStep = step;
    const former = byId("panel").src;
    byId("panel").src = URL.createObjectURL(await this.requests.panel(this.id));
    if (former) URL.revokeObjectURL(former);
    byId("panel-section").hidden = false;
  }

  /** Loads the report into the frame when it is shown for the first time. */
  #embedReport() {
    const frame = byId("embedded").querySelector("iframe");
    if (byId("embedded").open && !frame.src) frame.src = byId("report").href;
  }

  /** Opens the report in a new tab. A link cannot send a key, so with one the report is downloaded. */
  #openReport(event) {
    if (!this.requests.credentials.key) return;
    event.preventDefault();
    this.run(async () => saveFile(await this.requests.report(this.id), `training-${this.id}-report.html`));
  }
}

function showProblem(error) {
  if (!isMissing(error)) throw error;
  showMissing(translate("This training does not exist"), translate("All trainings"), "train");
}

function shareText(number, count) {
  return translateCount(count, "{number} of {count} photograph", "{number} of {count} photographs", { number });
}

function dataSetLink({ data_set: id, data_set_name: name, data_set_version: version }) {
  const link = createElement("a", "", translate("{data_set}, version {version}", { data_set: name, version }));
  link.href = `datasets?id=${id}`;
  return link;
}

function makeButton(text, className, act) {
  const button = createElement("button", className, text);
  button.type = "button";
  button.dataset.needs = "engineer";
  button.addEventListener("click", act);
  return button;
}

function linkButton(text, href, ...names) {
  const link = createElement("a", "button", text);
  link.classList.add(...names);
  link.href = href;
  return link;
}

function showFacts(list, facts) {
  list.replaceChildren(...facts.flatMap(([name, text]) => [createElement("dt", "", name), createElement("dd", "", text)]));
}
