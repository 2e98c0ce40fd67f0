// The label page: one photograph after another gets a label and a mask.

import { byId, setText } from "../shared/dom.js";
import { isMissing } from "../shared/empty_state.js";
import { labelText } from "../shared/label_text.js";
import { translate, translateCount } from "../shared/language.js";
import { Credentials } from "../shared/credentials.js";
import { askForCredentials } from "../shared/credentials_prompt.js";
import { DraftStore } from "../shared/draft_store.js";
import { ClickTool } from "../shared/mask_editor/click_tool.js";
import { bindKeys } from "../shared/mask_editor/keyboard.js";
import { MaskEditor } from "../shared/mask_editor/mask_editor.js";
import { writeGrey } from "../shared/png.js";
import { ProposalRequests } from "../shared/proposal_requests.js";
import { Proposals } from "../shared/proposals.js";
import { openTabSession } from "../shared/tab_session.js";
import { showChoice, showMissing } from "./data_set_choice.js";
import { LabelPanel } from "./label_panel.js";
import { PhotographQueue } from "./photograph_queue.js";
import { Requests } from "./requests.js";
import { selectionOf, showSelection } from "./selection.js";

const RENEW_MS = 100_000; // leases expire after 300 s
const IDLE_MS = 600_000; // without input; then the leases expire for others
const CONFLICT = 409;
const [DRAWN, PROPOSED] = ["drawn", "proposed"]; // sources of annotations

const query = new URLSearchParams(location.search);
const main = document.querySelector("main");
const credentials = new Credentials(askForCredentials);
const selection = selectionOf(query);
const isSelective = Object.keys(selection).length > 0;
const { id: session } = openTabSession("segdec.label"); // a reload leaves requests behind that lease later
const requests = new Requests({ credentials, session, dataSet: query.get("data_set"), selection });
const parts = { requests, drafts: new DraftStore("segdec.drafts"), classes: [] };
const queue = new PhotographQueue(requests, parts, onQueueChange);
const editor = new MaskEditor({
  onChange: onMaskChange,
  offersIgnored: true,
  keepsTool: true,
  makeClickTool: (settings) => new ClickTool({
    ...settings,
    segment: (clicks) => requests.segment(shown.id, clicks),
    onProblem: (error) => panel.showNotice(error.message),
  }),
});
const proposals = new Proposals(byId("proposals"), new ProposalRequests(credentials, query.get("data_set")), {
  attempt: (act) => run(act),
  onRun: onProposals,
});
const panel = new LabelPanel({ onGood: () => saveWhole("good"), onClass: chooseClass });

let shown = null; // the displayed photograph
let saved = null; // what was saved last, to be copied: {name, label, width, height, pixels, isBoxes}
let lastInputAt = Date.now();
let proposing = false; // whether a model proposes labels now
let isStarted = false; // whether the data set is known, and its photographs are fetched

// === Showing ===

function onQueueChange() {
  const count = queue.unlabelled ?? 0;
  setText(byId("unlabelled"), translateCount(count, "{count} without a label", "{count} without a label"));
  if (queue.current !== shown || !shown) show(queue.current);
}

async function show(photograph) {
  shown = photograph;
  editor.clear();
  byId("picture-error").hidden = true;
  main.dataset.state = photograph ? "task" : queue.exhausted ? "empty" : "loading";
  if (!photograph) {
    panel.showNotice("");
    return showEmpty();
  }
  main.dataset.picture = "loading";
  forgetWanted(photograph);
  panel.showPhotograph(photograph);
  showSteps();
  showPreview(photograph);
  try {
    await photograph.load();
  } catch (error) {
    if (photograph === shown) showPictureError(error);
    return undefined;
  }
  if (photograph !== shown) return undefined;
  main.dataset.picture = "shown";
  panel.showPhotograph(photograph); // the proposal may be gone
  editor.show(photograph);
  chooseProposedClass();
  setText(byId("announcement"), [photograph.given.name, byId("proposal").textContent].filter(Boolean).join(". "));
  return undefined;
}

/** Enables the buttons for which there is a photograph. */
function showSteps() {
  byId("back").disabled = !queue.former.length;
  byId("undo-save").disabled = !queue.saved.length;
  byId("copy").disabled = !saved;
}

/** Removes the first photograph from the address when another one follows, so that a reload does not return to it. */
function forgetWanted(photograph) {
  if (!query.has("photograph") || photograph.id === Number(query.get("photograph"))) return;
  query.delete("photograph");
  history.replaceState(null, "", `label?${query}`);
}

/** Shows the thumbnail of a photograph until it is loaded. */
async function showPreview(photograph) {
  byId("preview").removeAttribute("src");
  if (photograph.bitmap) return;
  const thumbnail = await requests.thumbnail(photograph.id).catch(() => null); // the photograph itself follows
  if (!thumbnail || photograph !== shown || photograph.bitmap) return;
  byId("preview").src = URL.createObjectURL(thumbnail);
  byId("preview").decode().catch(() => {}).finally(() => URL.revokeObjectURL(byId("preview").src));
}

function showEmpty() {
  const skipped = queue.skipped.size;
  const exhausted = isSelective ? translate("No other photograph matches the selection") : translate("No photograph without a label is left");
  setText(byId("empty-title"), queue.exhausted ? exhausted : translate("Loading …"));
  setText(byId("empty-text"), queue.exhausted && !isSelective && queue.unlabelled > skipped ? translate("Other people have the remaining ones open.") : "");
  byId("show-skipped").hidden = !queue.exhausted || !skipped;
  byId("next-step").hidden = !queue.exhausted;
  setText(byId("show-skipped"), translateCount(skipped, "Show the skipped photograph", "Show the {count} skipped photographs"));
}

function showPictureError(error) {
  main.dataset.picture = "failed";
  setText(byId("picture-text"), translate("The photograph cannot be displayed. {reason}", { reason: error.message }));
  byId("picture-error").hidden = false;
}

function onMaskChange() {
  if (!shown?.drawing || shown.drawing.pending) return;
  panel.showLabel(shown);
  panel.showNotice(shown.error); // a hint is not needed any more
  if (shown.drawing.modified) shown.keepDraft();
}

/** Shows the proposals of a run that has ended while this page was open. */
function onProposals(latest) {
  const hasEnded = latest && latest.state !== "running" && proposing;
  proposing = latest?.state === "running";
  if (hasEnded) run(() => queue.reload());
}

// === Labels ===

/** Chooses the class with which tools draw, and which a photograph without a mask gets. */
function chooseClass(number) {
  const defect = shown?.defects[number - 1];
  if (!defect) return;
  shown.chosen = defect;
  showClass(defect.value);
}

/** Chooses the class that a model proposes. */
function chooseProposedClass() {
  const defect = shown.defects.find(({ name }) => name === shown.given.proposal?.label);
  if (defect) showClass(defect.value);
}

function showClass(value) {
  editor.toolbar.chooseClass(value);
  if (!shown.drawing) return;
  panel.showLabel(shown);
  panel.showNotice(shown.error);
}

/** Saves what is shown: the proposal of a model, the mask with its classes, or the chosen class alone. */
function saveShown() {
  if (main.dataset.picture !== "shown" || shown.drawing.pending) return;
  const { accepted, chosen, copied, drawnClasses: drawn, given } = shown;
  const known = [accepted?.label, copied, given.label].find((label) => drawn.includes(label)); // else the largest class
  const label = known ?? drawn[0] ?? accepted?.label ?? chosen?.name;
  if (label) save({ label, hasMask: !shown.drawing.empty, source: accepted ? PROPOSED : DRAWN });
  else panel.showNotice(translate("Draw a defect or choose a label first."));
}

/** Saves a label without defects: good or ignore. */
function saveWhole(label) {
  if (main.dataset.picture !== "shown") return;
  const { accepted } = shown;
  if (label === "good" && shown.drawnClasses.length && !accepted) {
    panel.showNotice(translate("The mask has defects: clear it first, or press Enter to save the defects."));
    return;
  }
  const hasMask = label === "good" && !shown.drawing.empty && !accepted; // a mask that is proposed has defects
  save({ label, hasMask, source: accepted?.label === label ? PROPOSED : DRAWN });
}

function save({ label, hasMask, source }) {
  const photograph = shown;
  const { width, height, pixels, isBoxes } = photograph.drawing;
  const mask = hasMask ? writeGrey(width, height, pixels.slice()) : null;
  saved = { name: photograph.given.name, label, width, height, pixels: hasMask ? pixels : null, isBoxes };
  if (photograph.drawing.modified) photograph.keepDraft();
  queue.saving.add(photograph);
  queue.saved.push(photograph);
  photograph.error = "";
  photograph.work = photograph.work.then(async () => {
    try {
      await photograph.save({ label, mask: await mask, is_boxes: hasMask && isBoxes, source });
    } catch (error) {
      photograph.error = translate("{name} was not saved: {reason}", { name: photograph.given.name, reason: error.message });
      queue.saving.delete(photograph);
      queue.saved = queue.saved.filter((each) => each !== photograph);
      queue.reopen(photograph);
      panel.showNotice(photograph.error);
    } finally {
      queue.saving.delete(photograph);
      run(() => queue.refill());
      proposals.load();
    }
  });
  run(() => queue.showNext());
}

/** Undoes the last save and shows its photograph. */
function undoSave() {
  const photograph = queue.saved.pop();
  if (!photograph) return panel.showNotice(translate("There is no label to undo."));
  photograph.work = photograph.work.then(async () => {
    if (photograph.error) return; // it was not saved
    try {
      await photograph.undoSave();
    } catch (error) {
      if (error.status !== CONFLICT && photograph.replaced.length) queue.saved.push(photograph);
      showSteps();
      return panel.showNotice(translate("The label of {name} was not undone: {reason}", { name: photograph.given.name, reason: error.message }));
    }
    if (photograph === shown) show(photograph);
    else queue.reopen(photograph);
    run(() => queue.refill());
    proposals.load();
  });
}

/** Copies the mask and the label that were saved last. */
function copySaved() {
  if (main.dataset.picture !== "shown" || shown.drawing.pending) return;
  if (!saved) {
    panel.showNotice(translate("There is no label to copy yet."));
    return;
  }
  const { name, label, pixels, isBoxes } = saved;
  const [theirs, ours] = [saved, shown.drawing].map(({ width, height }) => `${width} × ${height}`);
  if (pixels && theirs !== ours) {
    panel.showNotice(translate("{name} has {theirs} pixels and this photograph {ours}: the mask cannot be copied.", { name, theirs, ours }));
    return;
  }
  editor.toolbar.step("replace", pixels?.slice() ?? new Uint8Array(shown.drawing.pixels.length), isBoxes);
  const number = parts.classes.indexOf(label) + 1;
  if (number && pixels) shown.copied = label;
  else if (number) chooseClass(number);
  else panel.showNotice(translate("{name} has the label {label}: press {key}.", { name, label: labelText(label), key: label === "good" ? "G" : "I" }));
}

// === Wiring ===

/** Runs a request and shows its error; returns its result, or null. */
async function run(act) {
  try {
    return await act();
  } catch (error) {
    panel.showNotice(error.message);
    return null;
  } finally {
    byId("forget-key").hidden = !credentials.key;
  }
}

const skip = () => shown && run(() => queue.skip());
const back = () => queue.back();

bindKeys(
  editor,
  {
    undo: () => editor.toolbar.step("undo"),
    redo: () => editor.toolbar.step("redo"),
    digit: chooseClass,
    keys: {
      g: () => saveWhole("good"),
      i: () => saveWhole("ignore"),
      u: undoSave,
      r: copySaved,
      n: skip,
      ArrowRight: skip,
      ArrowLeft: back,
      Enter: () => editor.closePolygon() || saveShown(),
    },
  },
  "#labels, #navigation",
);
byId("save").addEventListener("click", saveShown);
byId("skip").addEventListener("click", (event) => event.detail > 1 || skip());
byId("back").addEventListener("click", back);
byId("undo-save").addEventListener("click", (event) => event.detail > 1 || undoSave());
byId("copy").addEventListener("click", copySaved);
byId("steps").prepend(byId("copy")); // beside what else changes the mask
byId("is-boxes").addEventListener("change", ({ target }) => shown?.drawing && shown.setBoxes(target.checked));
byId("ignore").addEventListener("click", () => saveWhole("ignore"));
byId("reload-picture").addEventListener("click", () => show(shown));
byId("retry").addEventListener("click", () => {
  panel.showNotice("");
  run(() => (isStarted ? queue.refill() : start().catch(showStartProblem)));
});
byId("show-skipped").addEventListener("click", () => run(() => queue.offerSkipped()));
byId("forget-key").addEventListener("click", () => {
  credentials.forgetKey();
  byId("forget-key").hidden = true;
});
for (const name of ["pointerdown", "keydown"]) document.addEventListener(name, () => (lastInputAt = Date.now()), true);
window.addEventListener("beforeunload", (event) => queue.saving.size && event.preventDefault());
window.addEventListener("pagehide", () => requests.dataSet && requests.release().catch(() => {}));

async function start() {
  if (!requests.dataSet) return showChoice(await requests.dataSets());
  const dataSet = await requests.describe();
  parts.classes = dataSet.classes;
  setText(byId("data-set"), dataSet.name);
  for (const name of ["data-set", "next-step"]) byId(name).href = `datasets?id=${dataSet.id}`;
  panel.showClasses(dataSet.classes);
  showSelection(dataSet.id, dataSet.classes, selection);
  if (query.has("photograph")) {
    queue.want(Number(query.get("photograph")));
    byId("others").href = `label?data_set=${dataSet.id}`;
  }
  await queue.refill();
  isStarted = true;
  await proposals.load();
  setInterval(() => document.hidden || Date.now() - lastInputAt > IDLE_MS || run(() => queue.refill()), RENEW_MS);
  return undefined;
}

/** Shows that the data set or the photograph in the address does not exist; throws other errors. */
function showStartProblem(error) {
  const { href } = byId("others"); // only with a photograph in the address, when the data set is known
  if (!isMissing(error) || (byId("data-set").textContent && !href)) throw error;
  if (href) showMissing(translate("This photograph does not exist"), translate("Label other photographs"), href);
  else showMissing(translate("This data set does not exist"), translate("All data sets"), "datasets");
}

run(() => start().catch(showStartProblem));
