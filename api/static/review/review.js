// The page of reviews: one picture after another, a verdict on each, and the mask mended where it is wrong.

import { byId } from "../shared/dom.js";
import { askKey } from "../shared/key_prompt.js";
import { Key } from "../shared/service.js";
import { showEmptyState } from "./empty_state.js";
import { MaskCanvas } from "./mask_canvas.js";
import { Connection } from "./connection.js";
import { TaskQueue } from "./task_queue.js";
import { PointerInput } from "./pointer_input.js";
import { bindKeys } from "./keyboard.js";
import { Toolbar } from "./toolbar.js";
import * as panel from "./task_panel.js";
import { Requests } from "./requests.js";
import { Reviewer } from "./reviewer.js";
import { openSession } from "./session.js";
import { showStatistics } from "./statistics.js";
import { FailedVerdicts } from "./failed_verdicts.js";
import { VerdictSender, failureText } from "./verdict_sender.js";
import { partName, taskText, verdictText } from "./format.js";

const MAX_UNDO = 30; // verdicts that can be taken back

const main = document.querySelector("main");

const session = openSession();
const key = new Key(askKey);
const station = new URLSearchParams(location.search).get("station");
const requests = new Requests({ key, session: session.id, station });
const reviewer = new Reviewer();
const maskCanvas = new MaskCanvas(byId("picture"));
const toolbar = new Toolbar(maskCanvas, { onChange: showMaskState });
const pointerInput = new PointerInput(byId("picture"), maskCanvas.view, { tool: () => toolbar.tool, redraw: () => maskCanvas.draw() });
const connection = new Connection(() => verdictSender.pending);
const reporterFor = (who) => (connected, error) => connection.note(who, connected, error);
const taskQueue = new TaskQueue(requests, { onChange: onQueueChange, onConnection: reporterFor("desk") });
const verdictSender = new VerdictSender(requests, { onSubmitted, onReverted, onConnection: reporterFor("verdicts") });
const failedVerdicts = new FailedVerdicts({ onRetry: reviewAgain, onDismiss: (task) => taskQueue.forget(task) });

const judged = []; // {task, verdict, state}: what can be undone, a skipped one without a verdict
let shown = null; // the task that is on the page
let spokenPrefix = ""; // what the reviewer has just done, to be read out with the next task

// === Showing ===

function onQueueChange() {
  panel.showCounts(taskQueue.waiting, session.tally);
  if (taskQueue.current !== shown || !shown) show(taskQueue.current);
}

async function show(task) {
  shown = task;
  maskCanvas.clear(); // first: the picture's memory may have been given back
  pointerInput.cancelAll();
  toolbar.take(null);
  byId("picture-trouble").hidden = true;
  main.dataset.state = task ? "task" : taskQueue.exhausted ? "empty" : "looking";
  if (!task) return showEmptyState(taskQueue);
  byId("reason").value = task.reason ?? "";
  byId("mask-right").checked = task.maskRight ?? false;
  main.dataset.picture = "loading";
  panel.showTask(task);
  try {
    await task.load();
  } catch (error) {
    if (task === shown) showPictureError(error);
    return undefined;
  }
  if (task === shown) showPicture(task);
  return undefined;
}

function showPicture(task) {
  main.dataset.picture = "shown";
  panel.showVerdicts(task, judge);
  maskCanvas.show(task);
  toolbar.take(task);
  const moved = taskQueue.taken ? `Somebody else has ${taskQueue.taken} before them now. ` : "";
  if (moved) panel.showNotice(moved);
  announce(`${spokenPrefix} ${moved}${task.error} ${taskText(task)}`);
  taskQueue.taken = spokenPrefix = "";
}

function showPictureError(error) {
  main.dataset.picture = "failed";
  byId("picture-words").textContent = `The picture of ${partName(shown.record)} cannot be shown. ${error.message}`;
  byId("picture-trouble").hidden = false;
}

function showMaskState() {
  byId("mask-toggle").setAttribute("aria-pressed", maskCanvas.maskShown);
  const drawing = shown?.drawing; // what was mended is sent anyhow
  byId("right-field").classList.toggle("unused", !drawing || drawing.modified || drawing.empty);
}

function announce(words) {
  byId("announcement").textContent = words;
}

// === Judging ===

function judge(label) {
  const task = shown;
  if (!task || main.dataset.picture !== "shown") return announce("The picture is not here yet.");
  const trouble = verdictConflict(task, label);
  if (trouble) {
    announce(trouble);
    return panel.showNotice(trouble);
  }
  const verdict = { label, reason: byId("reason").value.trim() || null, reviewer: reviewer.name };
  Object.assign(task, { error: "", reason: verdict.reason, maskRight: byId("mask-right").checked });
  session.tally.add(Date.now());
  remember({ task, verdict, state: "…" });
  failedVerdicts.remove(task);
  verdictSender.submit(task, verdict);
  spokenPrefix = `${verdictText(label)}.`;
  return taskQueue.send();
}

function remember(entry) {
  judged.push(entry);
  judged.splice(0, judged.length - MAX_UNDO);
  showProgress();
}

function showProgress() {
  panel.showRecent(judged);
  panel.showCounts(taskQueue.waiting, session.tally);
}

/** Why a verdict does not agree with the mask that was mended; "" if it does. */
function verdictConflict({ drawing }, label) {
  if (drawing.pending) return "A stroke is being drawn: end it first.";
  if (label === "unsure" || !drawing.modified) return "";
  if (label === "good" && !drawing.empty) return "The mended mask shows a defect: clear it, or name the defect.";
  if (label !== "good" && drawing.empty) return "The mended mask is empty: draw the defect, or use the predicted mask.";
  return "";
}

function skip() {
  if (!shown) return;
  remember({ task: shown, verdict: null, state: "" });
  taskQueue.skip();
}

/** Goes back to what was judged or skipped last. */
function undo() {
  const last = judged.pop();
  if (!last) return announce("There is nothing to undo.");
  if (last.verdict) {
    session.tally.remove();
    last.verdict.undone = true; // it need not be kept any more
    verdictSender.revert(last.task);
  }
  showProgress();
  spokenPrefix = `${last.verdict ? verdictText(last.verdict.label) : "Skipping"} undone.`;
  return taskQueue.reopen(last.task);
}

function onSubmitted(task, verdict, error) {
  const at = judged.findIndex((one) => one.verdict === verdict);
  if (at >= 0 && !error) judged[at].state = "kept";
  if (error && !verdict.undone) {
    if (at >= 0) judged.splice(at, 1);
    session.tally.remove();
    task.error = `${verdictText(verdict.label)} was not kept: ${failureText(error)}`;
    failedVerdicts.add(task, task.error);
  }
  showProgress();
  taskQueue.settle(task, !error);
}

function onReverted(task, error) {
  if (error) panel.showNotice(`The verdict on ${partName(task.record)} stands: ${failureText(error)}`);
  taskQueue.settle(task, true);
}

async function reviewAgain(task) {
  key.declined = false;
  task.record = await requests.find(task.id).catch(() => task.record);
  taskQueue.reopen(task);
}

/** Asks for more; what fails is shown, and tried again by itself. */
async function refill() {
  await taskQueue.refill();
  byId("forget-key").hidden = !key.value;
}

// === Wiring ===

const actions = {
  judge,
  judgeDefect: (number) => {
    const defect = shown?.defects[number - 1];
    if (defect) judge(defect.name);
  },
  skip,
  undo: () => (toolbar.name === "look" ? undo() : toolbar.step("undo") || announce("No stroke to undo.")),
  redo: () => toolbar.step("redo"),
  close: () => toolbar.name === "polygon" && toolbar.tools.polygon.close(),
  tool: (name) => shown && toolbar.choose(name),
  nextClass: () => toolbar.nextClass(),
  resize: (steps) => toolbar.resize(steps),
  toggleMask: () => {
    maskCanvas.maskShown = !maskCanvas.maskShown;
    showMaskState();
    maskCanvas.draw();
  },
  reason: () => byId("reason").focus(),
  toggleRight: () => byId("mask-right").click(),
  zoomIn: () => pointerInput.zoom(),
  zoomOut: () => pointerInput.zoom(1 / 1.5),
  fit: () => pointerInput.fit(),
  move: (x, y) => pointerInput.moveBy(x, y),
};
bindKeys(actions);
byId("skip").addEventListener("click", (event) => event.detail > 1 || skip());
byId("undo").addEventListener("click", undo);
byId("mask-toggle").addEventListener("click", actions.toggleMask);
byId("opacity").addEventListener("input", ({ target }) => {
  maskCanvas.opacity = target.valueAsNumber;
  maskCanvas.draw();
});
byId("try-now").addEventListener("click", () => {
  key.declined = false;
  refill();
});
byId("load-again").addEventListener("click", () => show(shown));
byId("show-skipped").addEventListener("click", () => {
  taskQueue.skipped = [];
  refill();
});
byId("show-slips").addEventListener("click", () => showStatistics(requests));
byId("close-slips").addEventListener("click", () => byId("slips").close());
byId("forget-key").addEventListener("click", () => {
  key.forget();
  byId("forget-key").hidden = true;
});
window.addEventListener("beforeunload", (event) => {
  if (verdictSender.pending || failedVerdicts.count) event.preventDefault();
});
const showPageError = (reason) => panel.showNotice(`The page failed: ${reason}. Load it again.`);
window.addEventListener("error", (event) => showPageError(event.message));
window.addEventListener("unhandledrejection", (event) => showPageError(event.reason));
connection.startPolling(refill, () => !taskQueue.current);
if (station !== null) byId("station").textContent = `${station} only`;
if (!reviewer.name) await reviewer.ask();
refill();
