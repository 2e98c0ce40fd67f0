// The models page: served versions, their candidates and thresholds, and the latest changes.

import { attempt } from "../shared/attempt.js";
import { byId, createElement, setText } from "../shared/dom.js";
import { askKey } from "../shared/key_prompt.js";
import { limitsText } from "../shared/record_text.js";
import { saveFile } from "../shared/save_file.js";
import { Key } from "../shared/service.js";
import { confirm } from "./confirmation.js";
import { differences } from "./differences.js";
import { showChanges, undoButton } from "./latest_changes.js";
import { ratingWarning } from "./rating_note.js";
import { ModelRequests } from "./requests.js";
import { labelState, thresholdState, undoSteps } from "./undo.js";
import { versionCard } from "./version_card.js";

const key = new Key(askKey);
const requests = new ModelRequests(key);

let models = []; // the served versions, as shown

async function load() {
  const found = await attempt(key, () => Promise.all([requests.models(), requests.candidates(), requests.changes()]));
  if (!found) return;
  const [served, candidates, changes] = found;
  models = served;
  const names = [...new Set(models.map(({ name }) => name))];
  byId("models").replaceChildren(...names.map((name) => section(name, candidates)));
  showChanges(changes, models, undo);
}

// === Sections ===

function section(name, candidates) {
  const versions = models.filter((model) => model.name === name);
  const { labels } = labelState(name, models);
  const buttons = createElement("div", "buttons");
  if (labels.candidate) {
    const text = `Version ${labels.candidate} answers from now on instead of version ${labels.stable}, which you can restore. ${ratingWarning(versions.find(({ version }) => version === labels.candidate))}`.trim();
    const stop = `Version ${labels.candidate} no longer processes photographs.`;
    buttons.append(
      labelButton(`Promote ${labels.candidate}`, text, name, "promote", () => requests.promote(name)),
      labelButton("Stop the comparison", stop, name, "candidate", () => requests.setCandidate(name, null)),
    );
  }
  if (labels.previous) {
    const text = `Version ${labels.previous} answers again instead of version ${labels.stable}.`;
    buttons.append(labelButton(`Roll back to ${labels.previous}`, text, name, "roll back", () => requests.rollBack(name)));
  }
  const cards = versions.map((model) => versionCard(model, findComparison(candidates, model), actionsOf(model)));
  const parts = [createElement("h2", "", name), buttons, createElement("div", "cards", ...cards)];
  const compared = candidates.find(({ model }) => model.name === name);
  if (compared?.differing) parts.push(differences(name, compared.differing, requests));
  return createElement("section", "", ...parts);
}

function actionsOf(model) {
  return {
    setThresholds: (...given) => setThresholds(model, ...given),
    openReport: (event) => openReport(event, model),
  };
}

/** Opens a report in a new tab. A link cannot send a key, so with one the report is downloaded. */
async function openReport(event, model) {
  if (!key.value) return;
  event.preventDefault();
  const page = await attempt(key, () => requests.report(model));
  if (page) saveFile(page, `${model.name}-${model.version}-report.html`);
}

function findComparison(candidates, { name, version }) {
  return candidates.find(({ model }) => model.name === name && model.version === version) ?? null;
}

function labelButton(title, text, name, what, act) {
  const button = createElement("button", "", title);
  button.type = "button";
  button.addEventListener("click", () => change(title, text, act, what, () => labelState(name, models)));
  return button;
}

function setThresholds({ name, version }, title, text, limits) {
  const act = () => requests.setThresholds(name, version, limits);
  change(`${title} of version ${version}`, text, act, "thresholds", () => thresholdState(name, version, models));
}

// === Changes ===

/** Asks whether to make a change, makes it, and offers to undo it. `state()` is what the change `what` concerns. */
async function change(title, text, act, what, state) {
  if (!(await confirm(title, text))) return;
  const before = state();
  byId("done").hidden = true;
  if (!(await attempt(key, act))) return;
  await load();
  const made = { what, before, after: state() };
  showDone(`${title}: done.`, undoSteps(made, models) ? [undoButton(() => undo(made), `Undo: ${title}`)] : []);
}

async function undo(made) {
  const steps = undoSteps(made, models);
  if (!steps || !(await confirm("Undo", undoText(made)))) return;
  byId("done").hidden = true;
  const done = await attempt(key, async () => {
    for (const step of steps) await step(requests);
    return true;
  });
  const problem = byId("problem").textContent;
  await load();
  if (done) showDone("Undone.", []);
  else showProblem(problem);
}

/** The text that asks before a change is undone. */
function undoText({ what, before }) {
  if (what === "thresholds") return `Version ${before.version} decides again as before: ${limitsText(before)}.`;
  const candidate = before.labels.candidate ? `version ${before.labels.candidate} is the candidate` : "there is no candidate";
  return `As before, version ${before.labels.stable} answers, and ${candidate}.`;
}

function showDone(text, buttons) {
  const [status, ...others] = byId("done").children;
  for (const other of others) other.remove();
  byId("done").append(...buttons);
  setText(status, text);
  byId("done").hidden = false;
  byId("done").scrollIntoView({ block: "nearest" });
}

/** Shows the problem of a change again: loading the new state has hidden it. */
function showProblem(text) {
  setText(byId("problem"), text);
  byId("problem").hidden = false;
}

byId("forget-key").addEventListener("click", () => {
  key.forget();
  load();
});
await load();
