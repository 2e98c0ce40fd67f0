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
import { freeName, renamed, withoutZone, withScale, withZone } from "./plan_changes.js";
import { PlanDraft } from "./plan_draft.js";
import { askDistance, askReason } from "./reason_dialog.js";
import { Reference } from "./reference.js";
import { PlanRequests } from "./requests.js";
import { SimulationPanel, summaryText } from "./simulation_panel.js";
import { stationText, VersionList } from "./version_list.js";
import { ZoneEditor } from "./zone_editor.js";
import { ZonePanel } from "./zone_panel.js";
import { moved, withoutCorner } from "./zone_shapes.js";

const MODEL = "model";
const NUDGES = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
const COPY_SHIFT_PX = 20;
const MIN_DISTANCE_PX = 10; // of two points of known distance: a click is inexact

const credentials = new Credentials(askForCredentials);
const requests = new PlanRequests(credentials);
const run = (act) => attempt(credentials, act);
const draft = new PlanDraft(onChange);
const editor = new ZoneEditor({
  onSelect: showPanels,
  onNew: addZone,
  onDrag: (zone) => changeZone(editor.canvas.selected, () => zone, "drag"),
  onDragEnd: () => draft.endMerge(),
  onMask: paintZone,
  onDistance: measure,
});
const zonePanel = new ZonePanel({
  onSelect: (name) => editor.select(name),
  onRename: (newName) => renameZone(editor.canvas.selected, newName),
  onCopy: copyZone,
  onDelete: () => deleteZone(editor.canvas.selected),
  onZone: (change) => changeZone(editor.canvas.selected, change),
});
const reference = new Reference(requests, { attempt: run, onPhotograph: showPhotograph });
const simulation = new SimulationPanel(requests, {
  current: () => ({ model: model?.name, plan: draft.plan }),
  isReady: areFieldsValid,
  onResult: showDefects,
  onShow: showPart,
});
const versions = new VersionList({ onOpen: openVersion, onActivate: alone(activate), onDeactivate: alone(deactivate), onMore: loadMoreVersions });

let models = [];
let model = null; // the stable version of the chosen model
let shownSize = null; // of the photographs of the plan, as displayed
let shownPart = null; // a simulated part whose defects alone are shown
let isAsking = false; // whether a dialog is open, or its request is sent
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
  if (!draft.plan && shown) begin(shown.bitmap);
  shownSize = draft.plan?.photograph ?? null;
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

function isSameSize(one, other) {
  return one.width === other.width && one.height === other.height;
}

function sizeOf({ width, height }) {
  return { width, height };
}

function sidesText(size) {
  return size ? `${size.width} × ${size.height}` : "";
}

/** Begins a plan for photographs of a size. */
function begin(photograph) {
  draft.change({ name: model.name, photograph: sizeOf(photograph), zones: {} });
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

// === Zones ===

/** Changes a zone by a function from the present one to another. */
function changeZone(name, change, merge = null) {
  if (name === null || !Object.hasOwn(draft.plan.zones, name)) return;
  const before = draft.plan.zones[name];
  const zone = change(before);
  if (zone !== before) draft.change(withZone(draft.plan, name, zone), merge && `${merge} ${name}`);
}

function addZone(shape, base = null) {
  const number = Object.keys(draft.plan.zones).length + 1;
  const name = freeName(draft.plan, base ?? translate("zone {number}", { number }));
  editor.select(name); // first, so that a mask is painted further
  draft.change(withZone(draft.plan, name, shape));
}

/** Adds a zone without drawing: over the whole photograph if it is the first one, else in the middle. */
function newZone() {
  const { photograph: { width, height }, zones } = draft.plan;
  const share = Object.keys(zones).length ? 0.25 : 0;
  const [left, top] = [width, height].map((side) => Math.floor(side * share));
  addZone({ rectangle: { corner: [left, top], width: width - 2 * left, height: height - 2 * top } });
}

/** Changes the mask of a zone, or adds one; null = nothing is painted any more. */
function paintZone(name, mask) {
  if (name === null) addZone({ mask });
  else if (mask === null) deleteZone(name);
  else changeZone(name, (zone) => ({ ...zone, mask }));
}

function renameZone(name, newName) {
  if (name === newName) return;
  if (editor.canvas.selected === name) editor.select(newName);
  draft.change(renamed(draft.plan, name, newName));
}

function copyZone() {
  const { selected: name, selectedZone: zone } = editor.canvas;
  if (!zone) return;
  const size = draft.plan.photograph;
  const shifted = [[1, 1], [-1, -1]].map(([x, y]) => moved(zone, x * COPY_SHIFT_PX, y * COPY_SHIFT_PX, size));
  addZone(shifted.find((copy) => JSON.stringify(copy) !== JSON.stringify(zone)) ?? zone, name);
}

function deleteZone(name) {
  draft.change(withoutZone(draft.plan, name));
}

/** Deletes the chosen corner of a polygon, or the selected zone. */
function deleteSelected() {
  const { selected, selectedZone, corner } = editor.canvas;
  if (selected === null) return;
  if (corner === null || !selectedZone.polygon) return deleteZone(selected);
  changeZone(selected, (zone) => withoutCorner(zone, corner));
  return editor.select(selected, null);
}

function nudge(x, y) {
  const { selected } = editor.canvas;
  if (selected !== null) changeZone(selected, (zone) => moved(zone, x, y, draft.plan.photograph), "nudge");
}

function startMeasuring() {
  editor.choose("distance");
  byId("stage").scrollIntoView({ block: "nearest" });
}

/** Sets the scale by two clicked points; one in perspective stays. */
async function measure(one, other) {
  if (draft.plan.photograph.perspective) return;
  const px = Math.hypot(other[0] - one[0], other[1] - one[1]);
  if (px < MIN_DISTANCE_PX) return;
  const mm = await askDistance(px);
  if (mm !== null) draft.change(withScale(draft.plan, { known_distance: { points: [one, other], mm } }));
}

function undo() {
  if (!editor.removeLastPoint()) draft.undo();
}

// === Versions ===

/** Does not begin while another dialog is open. */
function alone(act) {
  return async (...given) => {
    if (isAsking) return;
    isAsking = true;
    await act(...given).finally(() => (isAsking = false));
  };
}

/** Runs a request about the model; its answer is null if another model was chosen meanwhile. */
async function runForModel(ask) {
  const asked = model;
  const answer = await run(() => ask(asked.name));
  return asked === model ? answer : null;
}

async function loadVersions() {
  const page = await runForModel((name) => requests.plans(name));
  if (!page) return;
  versions.show(page);
  byId("help").open ||= !page.plans.length;
  byId("fixed").hidden = page.can_store;
  byId("store").hidden = !page.can_store;
}

async function loadMoreVersions() {
  const page = await runForModel((name) => requests.plans(name, versions.nextBefore));
  if (page) versions.show(page, versions.plans);
}

async function openVersion(version) {
  const stored = await runForModel((name) => requests.plan(name, version));
  if (stored) draft.open(stored.plan, version);
}

async function store() {
  if (!areFieldsValid()) return;
  const { plan } = draft;
  const page = await runForModel((name) => requests.plans(name));
  if (!page) return;
  const [newest] = page.plans;
  const lines = [translate("A stored version never changes. It decides only after somebody activates it.")];
  if (newest) lines.push(translate("The newest version is {version}, by {name}: {reason}", { version: newest.version, name: newest.author || "–", reason: newest.reason }));
  const answer = await askReason(translate("Store as a new version"), [...lines, simulationText(plan)]);
  const stored = answer && (await runForModel((name) => requests.store(name, plan, answer.reason)));
  if (!stored) return;
  draft.markStored(plan, stored.version);
  await loadVersions();
}

async function activate({ version, name }) {
  const active = await runForModel((of) => requests.activePlans(of));
  if (!active) return;
  const { stations } = await requests.names().catch(() => ({ stations: [] }));
  const lines = [
    translate("Version {version} ({name}) decides about photographs that arrive from now on.", { version, name }),
    ...active.map((plan) => translate("Now active for {station}: version {version}.", { station: stationText(plan.station), version: plan.version })),
    simulationText(draft.version === version ? draft.plan : null),
  ];
  const answer = await askReason(translate("Activate version {version}", { version }), lines, { stations: stations.filter(Boolean) });
  if (answer) await sendActive(version, answer.station, answer.reason);
}

async function deactivate(station) {
  const text = station
    ? translate("Photographs of this station are judged by the plan for all stations; without one, any defect makes a part defective.")
    : translate("Stations without a plan of their own then have none: any defect makes a part defective.");
  const answer = await askReason(translate("Deactivate the plan"), [translate("Active: {station}", { station: stationText(station) }), text]);
  if (answer) await sendActive(null, station, answer.reason);
}

async function sendActive(version, station, reason) {
  const { name } = model;
  if (await run(() => requests.activate(name, version, station, reason))) await loadVersions();
}

/** What was simulated about a plan. */
function simulationText(plan) {
  const { simulation: result } = simulation;
  const isSame = plan && result?.isComplete && result.plan === plan;
  return isSame ? summaryText(result, false) : translate("This plan was not simulated on this page.");
}

/** Whether all fields are valid; else it shows which one is not. */
function areFieldsValid() {
  const invalid = document.querySelector("#side :is(input, textarea):invalid");
  for (let part = invalid?.closest("details"); part; part = part.parentElement.closest("details")) part.open = true;
  return !invalid || invalid.reportValidity();
}

// === Start ===

async function chooseModel(name) {
  const chosen = models.find((one) => one.name === name) ?? models[0];
  model = chosen;
  byId("model").value = chosen.name;
  history.replaceState(null, "", `plan?${new URLSearchParams({ [MODEL]: chosen.name })}`);
  byId("no-sizes").hidden = Boolean(chosen.manifest.size_errors);
  simulation.clear();
  versions.show({ plans: [], next_before: null });
  const [active] = (await Promise.all([runForModel((of) => requests.activePlans(of)), draft.restore(chosen.name), loadVersions()]))[0] ?? [];
  if (model !== chosen) return;
  if (active && !draft.plan) await openVersion(active.version);
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

const nudges = Object.entries(NUDGES).map(([key, shift]) => [key, Object.assign(() => nudge(...shift), { repeats: true })]);
bindKeys(editor, {
  undo,
  redo: () => draft.redo(),
  digit: (number) => editor.select(Object.keys(draft.plan.zones)[number - 1] ?? null),
  keys: {
    ...Object.fromEntries(nudges),
    c: () => editor.choose("circle"),
    r: () => editor.choose("ring"),
    l: () => editor.choose("distance"),
    d: copyZone,
    Delete: deleteSelected,
    Backspace: deleteSelected,
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
byId("delete").addEventListener("click", deleteSelected);
byId("new-zone").addEventListener("click", newZone);
byId("store").addEventListener("click", alone(store));
byId("forget-key").addEventListener("click", () => {
  credentials.forgetKey();
  start();
});
await start();
