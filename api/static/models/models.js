// The models page: served versions, their candidates and thresholds, and the latest changes.

import { attempt } from "../shared/attempt.js";
import { byId, createElement, setText } from "../shared/dom.js";
import { noModelState } from "../shared/empty_state.js";
import { askForCredentials } from "../shared/credentials_prompt.js";
import { translate } from "../shared/language.js";
import { limitsText } from "../shared/record_text.js";
import { saveFile } from "../shared/save_file.js";
import { Credentials } from "../shared/credentials.js";
import { confirm } from "../shared/confirmation.js";
import { confirmationText } from "./confirmed_list.js";
import { differences } from "./differences.js";
import { showChanges, undoButton } from "./latest_changes.js";
import { ratingWarning } from "./rating_note.js";
import { ModelRequests } from "./requests.js";
import { aliasState, confirmedState, thresholdState, undoSteps } from "./undo.js";
import { versionCard } from "./version_card.js";

const credentials = new Credentials(askForCredentials);
const requests = new ModelRequests(credentials);

let models = []; // the served versions, as shown

async function load() {
  const found = await attempt(credentials, () => Promise.all([requests.models(), requests.candidates(), requests.changes()]));
  if (!found) return;
  const [served, candidates, changes] = found;
  models = served;
  const names = [...new Set(models.map(({ name }) => name))];
  const none = noModelState(translate("This page shows the models that inspect photographs: their versions, thresholds and candidates."));
  byId("models").replaceChildren(...(names.length ? names.map((name) => section(name, candidates)) : [none]));
  showChanges(changes, models, undo);
}

// === Sections ===

function section(name, candidates) {
  const versions = models.filter((model) => model.name === name);
  const { aliases } = aliasState(name, models);
  const buttons = createElement("div", "buttons");
  if (aliases.candidate) {
    const values = { version: aliases.candidate, other: aliases.stable };
    const text = translate("Version {version} answers from now on instead of version {other}, which you can restore.", values);
    const warning = ratingWarning(versions.find(({ version }) => version === aliases.candidate));
    const stop = translate("Version {version} no longer processes photographs.", values);
    buttons.append(
      aliasButton(translate("Promote {version}", values), `${text} ${warning}`.trim(), name, "promote", () => requests.promote(name)),
      aliasButton(translate("Stop the comparison"), stop, name, "candidate", () => requests.setCandidate(name, null)),
    );
  }
  if (aliases.previous) {
    const values = { version: aliases.previous, other: aliases.stable };
    const text = translate("Version {version} answers again instead of version {other}.", values);
    buttons.append(aliasButton(translate("Roll back to {version}", values), text, name, "roll back", () => requests.rollBack(name)));
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
    withdraw: (entry) => withdraw(model, entry),
    openReport: (event) => openReport(event, model),
  };
}

/** Opens a report in a new tab. A link cannot send a key, so with one the report is downloaded. */
async function openReport(event, model) {
  if (!credentials.key) return;
  event.preventDefault();
  const page = await attempt(credentials, () => requests.report(model));
  if (page) saveFile(page, `${model.name}-${model.version}-report.html`);
}

function findComparison(candidates, { name, version }) {
  return candidates.find(({ model }) => model.name === name && model.version === version) ?? null;
}

function aliasButton(title, text, name, what, act) {
  const button = createElement("button", "", title);
  button.dataset.needs = "engineer";
  button.type = "button";
  button.addEventListener("click", () => change(title, text, act, what, () => aliasState(name, models)));
  return button;
}

function setThresholds({ name, version }, title, text, limits) {
  const act = () => requests.setThresholds(name, version, limits);
  change(translate("{change} of version {version}", { change: title, version }), text, act, "thresholds", () => thresholdState(name, version, models));
}

function withdraw({ name, version }, entry) {
  const title = translate("Undo: {change}", { change: confirmationText(entry) });
  const text = translate("Photographs like these get a warning again: version {version} inspects them, and they are for review.", { version });
  const act = () => requests.withdraw(name, version, entry.number);
  change(title, text, act, "withdraw", () => confirmedState(name, version, models));
}

// === Changes ===

/** Asks whether to make a change, makes it, and offers to undo it. `state()` is what the change `what` concerns. */
async function change(title, text, act, what, state) {
  if (!(await confirm(title, text))) return;
  const before = state();
  byId("done").hidden = true;
  if (!(await attempt(credentials, act))) return;
  await load();
  const made = { what, before, after: state() };
  const undoTitle = translate("Undo: {change}", { change: title });
  const buttons = undoSteps(made, models) ? [undoButton(() => undo(made), undoTitle)] : [];
  showDone(translate("{change}: done.", { change: title }), buttons);
}

async function undo(made) {
  const steps = undoSteps(made, models);
  if (!steps || !(await confirm(translate("Undo"), undoText(made)))) return;
  byId("done").hidden = true;
  const done = await attempt(credentials, async () => {
    for (const step of steps) await step(requests);
    return true;
  });
  const problem = byId("problem").textContent;
  await load();
  if (done) showDone(translate("Undone."), []);
  else showProblem(problem);
}

/** The text that asks before a change is undone. */
function undoText({ what, before }) {
  if (what === "thresholds") {
    const values = { version: before.version, limits: limitsText(before) };
    return translate("Version {version} decides again as before: {limits}.", values);
  }
  if (what === "confirm") return translate("The limits of version {version} become as before: photographs like these get a warning again.", { version: before.version });
  if (what === "withdraw") return translate("The photographs are confirmed again: those like them get no warning by version {version}.", { version: before.version });
  const { stable, candidate } = before.aliases;
  return candidate
    ? translate("As before, version {stable} answers, and version {candidate} is the candidate.", { stable, candidate })
    : translate("As before, version {stable} answers, and there is no candidate.", { stable });
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
  credentials.forgetKey();
  load();
});
await load();
