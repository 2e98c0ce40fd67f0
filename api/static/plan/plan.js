// The plan page: zones on a photograph, rules, simulation, stored versions.

import { attempt } from "../shared/attempt.js";
import { Credentials } from "../shared/credentials.js";
import { askForCredentials } from "../shared/credentials_prompt.js";
import { byId, createElement, setText } from "../shared/dom.js";
import { noModelState } from "../shared/empty_state.js";
import { translate } from "../shared/language.js";
import { bindKeys } from "../shared/mask_editor/keyboard.js";
import { measuredDefects } from "../shared/plan_zones.js";
import { showGeneral, showWholePart } from "./general_panel.js";
import { withScale } from "./plan_changes.js";
import { PlanDraft } from "./plan_draft.js";
import { askDistance } from "./dialogs.js";
import { isSameSize, Reference } from "./reference.js";
import { PlanRequests } from "./requests.js";
import { SimulationPanel } from "./simulation_panel.js";
import { VersionPanel } from "./version_panel.js";
import { ZoneActions } from "./zone_actions.js";
import { ZoneEditor } from "./zone_editor.js";
import { ZonePanel } from "./zone_panel.js";

const MODEL = "model";
const NUDGES = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
const MIN_DISTANCE_PX = 10; // of two points of known distance: a click is inexact

const credentials = new Credentials(askForCredentials);
const requests = new PlanRequests(credentials);
const run = (act) => attempt(credentials, act);
const draft = new PlanDraft(onChange);
const editor = new ZoneEditor({
  onSelect: showPanels,
  onNew: (zone) => zones.add(zone),
  onDrag: (zone) => zones.changeSelected(() => zone, "drag"),
  onDragEnd: () => draft.endMerge(),
  onMask: (name, mask) => zones.paint(name, mask),
  onDistance: measure,
});
const zones = new ZoneActions(draft, editor);
const zonePanel = new ZonePanel({
  onSelect: (name) => editor.select(name),
  onRename: (newName) => zones.renameSelected(newName),
  onCopy: () => zones.copySelected(),
  onDelete: () => zones.delete(editor.canvas.selected),
  onZone: (change) => zones.changeSelected(change),
});
const reference = new Reference(requests, { attempt: run, onPhotograph: showPhotograph });
const simulation = new SimulationPanel(requests, {
  current: () => ({ model: model?.name, plan: draft.plan }),
  isReady: areFieldsValid,
  onResult: showDefects,
  onShow: showPart,
});
const versions = new VersionPanel(requests, {
  run: runForModel,
  draft,
  simulationText: (plan) => simulation.textAbout(plan),
  isReady: areFieldsValid,
});

let models = [];
let model = null; // the stable version of the chosen model
let shownSize = null; // of the photographs of the plan, as displayed
let shownPart = null; // a simulated part whose defects alone are shown
let isPending = false; // whether the panels will be made again
let isPressed = false; // whether a pointer is pressed

// === Showing ===

function onChange() {
  run(() => editor.setPlan(draft.plan));
  if (draft.plan && !(shownSize && isSameSize(draft.plan.photograph, shownSize))) reference.show();
  if (draft.plan) simulation.compare(draft.plan);
  showPanels();
}

/** Makes the panels again, after the focus has moved to the next field, and after a click has ended on its button. */
function showPanels() {
  if (isPending) return;
  isPending = true;
  setTimeout(() => isPressed || makePanels());
}

function makePanels() {
  if (!isPending) return;
  isPending = false;
  const { plan, version } = draft;
  byId("step-undo").disabled = !draft.done.length;
  byId("step-redo").disabled = !draft.undone.length;
  byId("delete").disabled = editor.canvas.selected === null;
  byId("tools").disabled = !plan;
  for (const part of document.querySelectorAll(".needs-plan")) part.hidden = !plan;
  if (!plan) return;
  const isEmpty = !Object.keys(plan.zones).length;
  byId("simulate-button").disabled = isEmpty;
  byId("store").disabled = isEmpty || version !== null;
  setText(byId("draft-state"), version === null ? translate("Draft, not stored") : translate("Stored as version {version}", { version }));
  const onPlan = (change) => draft.change(change(draft.plan));
  showGeneral(plan, { onChange: onPlan, onMeasure: startMeasuring });
  zonePanel.show(plan, editor.canvas.selected, editor.canvas.colors, model);
  showWholePart(plan, model, onPlan);
}

function showPhotograph(shown) {
  shownPart = null;
  shownSize = draft.plan?.photograph ?? (shown && sizeOf(shown.bitmap));
  if (!draft.plan && shown) draft.change({ name: model.name, photograph: shownSize, zones: {} });
  document.querySelector("main").dataset.picture = shownSize ? "shown" : "none";
  byId("no-photograph").hidden = Boolean(shownSize);
  if (!shownSize) return;
  const isOther = shown && !isSameSize(shown.bitmap, shownSize);
  const values = { shown: sidesText(shown?.bitmap), planned: sidesText(shownSize) };
  setText(byId("photograph-note"), isOther ? translate("This photograph has {shown} px, but the plan is for {planned} px: it inspects no other ones.", values) : "");
  byId("new-size").hidden = !isOther;
  const fitting = shown && !isOther ? shown : { bitmap: null, area: null };
  editor.canvas.setPhotograph(fitting.bitmap, shownSize, fitting.area);
  byId("new-size").onclick = () => draft.change({ ...draft.plan, photograph: sizeOf(shown.bitmap) }); // the scale may differ
  showDefects(simulation.simulation);
}

function sizeOf({ width, height }) {
  return { width, height };
}

function sidesText(size) {
  return size ? `${size.width} × ${size.height}` : "";
}

/** Draws the measured defects of simulated parts: of the shown one, or of all. */
function showDefects(result) {
  const isAll = byId("show-defects").checked;
  const isCurrent = result && result.plan.photograph === draft.plan?.photograph;
  const parts = !isCurrent ? [] : shownPart ? [shownPart] : isAll ? result.parts : [];
  editor.canvas.defects = parts.flatMap(({ verdict }) => (verdict ? measuredDefects(verdict) : []));
  editor.canvas.draw();
}

async function showPart(part) {
  if (!(await reference.choose(part))) return;
  shownPart = part;
  showDefects(simulation.simulation);
  byId("stage").scrollIntoView({ block: "nearest" });
}

// === Editing ===

function startMeasuring() {
  editor.choose("distance");
  byId("stage").scrollIntoView({ block: "nearest" });
}

/** Sets the scale by two clicked points; one in perspective stays. */
async function measure(one, other) {
  if (draft.plan.photograph.perspective) return;
  const px = Math.hypot(other[0] - one[0], other[1] - one[1]);
  if (px < MIN_DISTANCE_PX) return showProblem(translate("The points are too close: expected at least {px} px.", { px: MIN_DISTANCE_PX }));
  const mm = await askDistance(px);
  if (mm !== null) draft.change(withScale(draft.plan, { known_distance: { points: [one, other], mm } }));
}

function showProblem(text) {
  run(async () => {
    throw new Error(text);
  });
}

function undo() {
  if (!editor.removeLastPoint()) draft.undo();
}

/** Whether all fields are valid; else it shows which one is not. */
function areFieldsValid() {
  const invalid = document.querySelector("#side :is(input, textarea):invalid");
  for (let part = invalid?.closest("details"); part; part = part.parentElement.closest("details")) part.open = true;
  return !invalid || invalid.reportValidity();
}

// === Start ===

/** Runs a request about the model, `ask(name)`; its answer is null if it fails, or another model was chosen meanwhile. */
async function runForModel(ask) {
  const asked = model;
  const answer = await run(() => ask(asked.name));
  return asked === model ? answer : null;
}

async function chooseModel(name) {
  const chosen = models.find((one) => one.name === name) ?? models[0];
  model = chosen;
  byId("model").value = chosen.name;
  history.replaceState(null, "", `plan?${new URLSearchParams({ [MODEL]: chosen.name })}`);
  byId("no-sizes").hidden = Boolean(chosen.manifest.size_errors);
  simulation.clear();
  versions.clear();
  const [[active]] = await Promise.all([versions.load(), draft.restore(chosen.name)]);
  if (model !== chosen) return;
  if (active && !draft.plan) await versions.open(active.version);
  await reference.load(chosen.name, draft.plan?.photograph);
}

async function start() {
  models = (await run(() => requests.models())) ?? [];
  if (!models.length) {
    if (byId("problem").hidden) {
      byId("content").replaceWith(noModelState(translate("On this page you draw zones, and write rules for defects in them.")));
    }
    return;
  }
  byId("model").replaceChildren(...models.map(({ name }) => createElement("option", "", name)));
  byId("content").hidden = false;
  await chooseModel(new URLSearchParams(location.search).get(MODEL));
}

const nudges = Object.entries(NUDGES).map(([key, shift]) => [key, Object.assign(() => zones.moveSelected(...shift), { repeats: true })]);
bindKeys(editor, {
  undo,
  redo: () => draft.redo(),
  digit: (number) => editor.select(Object.keys(draft.plan.zones)[number - 1] ?? null),
  keys: {
    ...Object.fromEntries(nudges),
    c: () => editor.choose("circle"),
    r: () => editor.choose("ring"),
    l: () => editor.choose("distance"),
    d: () => zones.copySelected(),
    Delete: () => zones.deleteSelected(),
    Backspace: () => zones.deleteSelected(),
  },
}, "#stage");
document.addEventListener("pointerdown", () => (isPressed = true), true);
for (const name of ["pointerup", "pointercancel"]) {
  document.addEventListener(name, () => {
    isPressed = false;
    setTimeout(makePanels);
  }, true);
}
byId("model").addEventListener("change", ({ target }) => chooseModel(target.value));
byId("show-defects").addEventListener("change", () => {
  shownPart = null;
  showDefects(simulation.simulation);
});
byId("step-undo").addEventListener("click", undo);
byId("step-redo").addEventListener("click", () => draft.redo());
byId("delete").addEventListener("click", () => zones.deleteSelected());
byId("new-zone").addEventListener("click", () => zones.addRectangle());
byId("forget-key").addEventListener("click", () => {
  credentials.forgetKey();
  start();
});
await start();
