// The review page: a verdict on one picture after another, with corrected masks.

import { byId } from "../shared/dom.js";
import { translate } from "../shared/language.js";
import { askForCredentials } from "../shared/credentials_prompt.js";
import { bindKeys } from "../shared/mask_editor/keyboard.js";
import { MaskEditor } from "../shared/mask_editor/mask_editor.js";
import { partName, verdictText } from "../shared/record_text.js";
import { Credentials } from "../shared/credentials.js";
import { showEmptyState } from "./empty_state.js";
import { Connection } from "./connection.js";
import { TaskQueue } from "./task_queue.js";
import * as panel from "./task_panel.js";
import { Requests } from "./requests.js";
import { Reviewer } from "./reviewer.js";
import { openSession } from "./session.js";
import { showStatistics } from "./statistics.js";
import { FailedVerdicts } from "./failed_verdicts.js";
import { VerdictSender, failureText } from "./verdict_sender.js";
import { reviewText, taskText } from "./format.js";

const MAX_UNDO = 30; // verdicts

const main = document.querySelector("main");

const session = openSession();
const credentials = new Credentials(askForCredentials);
const station = new URLSearchParams(location.search).get("station");
const reviewer = new Reviewer(credentials);
const requests = new Requests({ credentials, session: session.id, station, reviewer });
const editor = new MaskEditor({ onChange: showMaskState });
const connection = new Connection(() => verdictSender.pending);
const reporterFor = (who) => (connected, error) => connection.report(who, connected, error);
const taskQueue = new TaskQueue(requests, { onChange: onQueueChange, onConnection: reporterFor("desk") });
const verdictSender = new VerdictSender(requests, { onSubmitted, onReverted, onConnection: reporterFor("verdicts") });
const failedVerdicts = new FailedVerdicts({ onRetry: reviewAgain, onDismiss: (task) => taskQueue.forget(task) });

const judged = []; // {task, verdict, state} that can be undone; `verdict` is null for skipped tasks
let shown = null; // the displayed task
let spokenPrefix = ""; // the last action, announced with the next task

// === Showing ===

function onQueueChange() {
  panel.showCounts(taskQueue.waiting, session.tally);
  if (taskQueue.current !== shown || !shown) show(taskQueue.current);
}

async function show(task) {
  shown = task;
  editor.clear();
  byId("picture-error").hidden = true;
  main.dataset.state = task ? "task" : taskQueue.exhausted ? "empty" : "loading";
  if (!task) return showEmptyState(taskQueue);
  byId("reason").value = task.reason ?? "";
  byId("mask-correct").checked = task.maskRight ?? false;
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
  editor.show(task);
  const part = taskQueue.leasedElsewhere;
  const moved = part ? translate("Another reviewer has {part} now.", { part }) : "";
  if (moved) panel.showNotice(moved);
  announce(`${spokenPrefix} ${moved} ${task.error} ${taskText(task)}`);
  taskQueue.leasedElsewhere = spokenPrefix = "";
}

function showPictureError(error) {
  main.dataset.picture = "failed";
  byId("picture-text").textContent = translate("The picture of {part} cannot be displayed. {reason}", {
    part: partName(shown.record),
    reason: error.message,
  });
  byId("picture-error").hidden = false;
}

function showMaskState() {
  const drawing = shown?.drawing; // edited masks are always sent
  byId("correct-field").classList.toggle("unused", !drawing || drawing.modified || drawing.empty);
}

function announce(text) {
  byId("announcement").textContent = text;
}

// === Judging ===

async function judge(label) {
  const task = shown;
  if (!task || main.dataset.picture !== "shown") return announce(translate("The picture is not loaded yet."));
  const conflict = verdictConflict(task, label);
  if (conflict) {
    announce(conflict);
    return panel.showNotice(conflict);
  }
  await reviewer.askOnce();
  if (task !== shown) return undefined; // another reviewer has it now
  const verdict = { label, reason: byId("reason").value.trim() || null, reviewer: reviewer.name };
  Object.assign(task, { error: "", reason: verdict.reason, maskRight: byId("mask-correct").checked });
  session.tally.add(Date.now());
  remember({ task, verdict, state: "…" });
  failedVerdicts.remove(task);
  verdictSender.submit(task, verdict);
  spokenPrefix = `${reviewText(label, task.record)}.`;
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

/** Why a verdict conflicts with the edited mask; "" if it does not. */
function verdictConflict({ drawing }, label) {
  if (drawing.pending) return translate("Finish the current stroke first.");
  if (label === "unsure" || !drawing.modified) return "";
  if (label === "good" && !drawing.empty) return translate("The edited mask has defect pixels: clear the mask, or choose a defect class.");
  if (label !== "good" && drawing.empty) return translate("The edited mask is empty: draw the defect, or restore the first mask.");
  return "";
}

/** Confirms that the photograph is usual although it is unlike the training; it stays to be judged. */
async function confirmUsual() {
  const task = shown;
  if (!task?.record.unlike_training || task.isUsual) return announce(translate("This photograph has nothing to confirm."));
  task.isUsual = true; // a second key does not ask again
  try {
    await requests.confirmUsual(task.record.answer.model.name, [task.id]);
  } catch (error) {
    task.isUsual = false;
    if (task === shown) panel.showNotice(error.message);
    return undefined;
  } finally {
    if (task === shown) panel.showWarnings(task);
  }
  return announce(translate("Confirmed as usual: photographs like this one get no warning from now on."));
}

function skip() {
  if (!shown) return;
  remember({ task: shown, verdict: null, state: "" });
  taskQueue.skip();
}

/** Undoes the last verdict or skip. */
function undo() {
  const last = judged.pop();
  if (!last) return announce(translate("Nothing to undo."));
  if (last.verdict) {
    session.tally.remove();
    last.verdict.undone = true; // its failure no longer matters
    verdictSender.revert(last.task, reviewer.name);
  }
  showProgress();
  spokenPrefix = translate("{action} undone.", { action: last.verdict ? verdictText(last.verdict.label) : translate("Skip") });
  return taskQueue.reopen(last.task);
}

function onSubmitted(task, verdict, error) {
  const at = judged.findIndex((one) => one.verdict === verdict);
  if (at >= 0 && !error) judged[at].state = translate("saved");
  if (error && !verdict.undone) {
    if (at >= 0) judged.splice(at, 1);
    session.tally.remove();
    const values = { verdict: verdictText(verdict.label), reason: failureText(error) };
    task.error = translate("{verdict} was not saved: {reason}", values);
    failedVerdicts.add(task, task.error);
  }
  showProgress();
  taskQueue.finishVerdict(task, !error);
}

function onReverted(task, error) {
  if (error) {
    const values = { part: partName(task.record), reason: failureText(error) };
    panel.showNotice(translate("The verdict on {part} was not undone: {reason}", values));
  }
  taskQueue.finishVerdict(task, true);
}

async function reviewAgain(task) {
  credentials.declined = false;
  task.record = await requests.find(task.id).catch(() => task.record);
  taskQueue.reopen(task);
}

/** Fetches tasks. */
async function refill() {
  await taskQueue.refill();
  byId("forget-key").hidden = !credentials.key;
}

// === Wiring ===

function judgeDefect(number) {
  const defect = shown?.defects[number - 1];
  if (defect) judge(defect.name);
}

bindKeys(
  editor,
  {
    undo: () => (editor.isDrawing ? editor.toolbar.step("undo") || announce(translate("No stroke to undo.")) : undo()),
    redo: () => editor.toolbar.step("redo"),
    digit: judgeDefect,
    keys: {
      g: () => judge("good"),
      u: () => judge("unsure"),
      n: skip,
      w: confirmUsual,
      ArrowRight: skip,
      r: () => byId("reason").focus(),
      k: () => byId("mask-correct").click(),
    },
  },
  "#verdicts, #navigation",
);
byId("skip").addEventListener("click", (event) => event.detail > 1 || skip());
byId("undo").addEventListener("click", undo);
byId("usual").addEventListener("click", confirmUsual);
byId("try-now").addEventListener("click", () => {
  credentials.declined = false;
  refill();
});
byId("reload-picture").addEventListener("click", () => show(shown));
byId("show-skipped").addEventListener("click", () => {
  taskQueue.skipped = [];
  refill();
});
byId("show-statistics").addEventListener("click", () => showStatistics(requests));
byId("close-statistics").addEventListener("click", () => byId("statistics").close());
byId("forget-key").addEventListener("click", () => {
  credentials.forgetKey();
  byId("forget-key").hidden = true;
});
window.addEventListener("beforeunload", (event) => {
  if (verdictSender.pending || failedVerdicts.count) event.preventDefault();
});
const showPageError = (reason) => panel.showNotice(translate("Page error: {reason}. Reload the page.", { reason }));
window.addEventListener("error", (event) => showPageError(event.message));
window.addEventListener("unhandledrejection", (event) => showPageError(event.reason));
connection.startPolling(refill, () => !taskQueue.current);
if (station !== null) byId("station").textContent = translate("{station} only", { station });
await reviewer.identify();
refill();
