// The models page: served versions, candidates, promotion and roll-back.

import { attempt } from "../shared/attempt.js";
import { byId, createElement, setText } from "../shared/dom.js";
import { askKey } from "../shared/key_prompt.js";
import { Key } from "../shared/service.js";
import { confirm } from "./confirmation.js";
import { ModelRequests } from "./requests.js";
import { versionCard } from "./version_card.js";

const key = new Key(askKey);
const requests = new ModelRequests(key);

async function load() {
  const shown = await attempt(key, () => Promise.all([requests.models(), requests.candidates()]));
  if (!shown) return;
  const [models, candidates] = shown;
  const names = [...new Set(models.map(({ name }) => name))];
  byId("models").replaceChildren(...names.map((name) => section(name, models.filter((model) => model.name === name), candidates)));
}

function section(name, versions, candidates) {
  const labels = new Map(versions.flatMap(({ version, labels: own }) => own.map((label) => [label, version])));
  const buttons = createElement("div", "buttons");
  if (labels.has("candidate")) {
    const [candidate, stable] = [labels.get("candidate"), labels.get("stable")];
    const text = `Version ${candidate} answers from now on instead of version ${stable}, which you can restore.`;
    buttons.append(
      actionButton(`Promote ${candidate}`, text, () => requests.promote(name)),
      actionButton("Stop the comparison", `Version ${candidate} no longer processes photographs.`, () => requests.setCandidate(name, null)),
    );
  }
  if (labels.has("previous")) {
    const text = `Version ${labels.get("previous")} answers again instead of version ${labels.get("stable")}.`;
    buttons.append(actionButton(`Roll back to ${labels.get("previous")}`, text, () => requests.rollBack(name)));
  }
  const cards = versions.map((model) => versionCard(model, findReport(candidates, model), (title, text, limits) => {
    change(`${title} of version ${model.version}`, text, () => requests.setThresholds(name, model.version, limits));
  }));
  return createElement("section", "", createElement("h2", "", name), buttons, createElement("div", "cards", ...cards));
}

function findReport(candidates, { name, version }) {
  return candidates.find(({ model }) => model.name === name && model.version === version) ?? null;
}

function actionButton(title, text, act) {
  const button = createElement("button", "", title);
  button.type = "button";
  button.addEventListener("click", () => change(title, text, act));
  return button;
}

/** Asks whether to make a change, makes it and shows the new state. */
async function change(title, text, act) {
  if (!(await confirm(title, text))) return;
  byId("done").hidden = true;
  if (!(await attempt(key, act))) return;
  setText(byId("done"), `${title}: done.`);
  byId("done").hidden = false;
  await load();
}

byId("forget-key").addEventListener("click", () => {
  key.forget();
  load();
});
await load();
