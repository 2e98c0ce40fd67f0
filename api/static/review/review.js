// The page of reviews: one picture after another, a verdict on each, and the mask mended where it is wrong.

import { askKey } from "../shared/key_prompt.js";
import { Key } from "../shared/service.js";
import { showBlank } from "./blank.js";
import { Board } from "./board.js";
import { Connection } from "./connection.js";
import { Desk } from "./desk.js";
import { Hand } from "./hand.js";
import { listenToKeys } from "./keys.js";
import { Mending } from "./mending.js";
import * as panel from "./panel.js";
import { Requests } from "./requests.js";
import { Reviewer } from "./reviewer.js";
import { takeSession } from "./session.js";
import { showSlips } from "./slips.js";
import { Unkept } from "./unkept.js";
import { Verdicts, whyNotKept } from "./verdicts.js";
import { partWords, taskWords, verdictWords } from "./words.js";

const MOST_UNDONE = 30; // verdicts that can be taken back

const part = (id) => document.getElementById(id);
const main = document.querySelector("main");

const session = takeSession();
const key = new Key(askKey);
const station = new URLSearchParams(location.search).get("station");
const requests = new Requests({ key, session: session.id, station });
const reviewer = new Reviewer();
const board = new Board(part("picture"));
const mending = new Mending(board, { onChange: showMaskState });
const hand = new Hand(part("picture"), board.view, { tool: () => mending.tool, redraw: () => board.draw() });
const connection = new Connection(() => verdicts.underWay);
const noteOf = (who) => (connected, error) => connection.note(who, connected, error);
const desk = new Desk(requests, { onChange: deskChanged, onConnection: noteOf("desk") });
const verdicts = new Verdicts(requests, { onSettled, onUndone, onConnection: noteOf("verdicts") });
const unkept = new Unkept({ onAgain: judgeAgain, onLeave: (task) => desk.forget(task) });

const judged = []; // {task, verdict, state}: what can be undone, a skipped one without a verdict
let shown = null; // the task that is on the page
let said = ""; // what the reviewer has just done, to be read out with the next task

// === Showing ===

function deskChanged() {
  panel.showCounts(desk.waiting, session.tally);
  if (desk.current !== shown || !shown) show(desk.current);
}

async function show(task) {
  shown = task;
  board.clear(); // first: the picture's memory may have been given back
  hand.letGo();
  mending.take(null);
  part("picture-trouble").hidden = true;
  main.dataset.state = task ? "task" : desk.exhausted ? "empty" : "looking";
  if (!task) return showBlank(desk);
  part("reason").value = task.reason ?? "";
  part("mask-right").checked = task.maskRight ?? false;
  main.dataset.picture = "loading";
  panel.showTask(task);
  try {
    await task.load();
  } catch (error) {
    if (task === shown) showPictureTrouble(error);
    return undefined;
  }
  if (task === shown) showPicture(task);
  return undefined;
}

function showPicture(task) {
  main.dataset.picture = "shown";
  panel.showVerdicts(task, judge);
  board.show(task);
  mending.take(task);
  const moved = desk.taken ? `Somebody else has ${desk.taken} before them now. ` : "";
  if (moved) panel.showNotice(moved);
  announce(`${said} ${moved}${task.error} ${taskWords(task)}`);
  desk.taken = said = "";
}

function showPictureTrouble(error) {
  main.dataset.picture = "failed";
  part("picture-words").textContent = `The picture of ${partWords(shown.record)} cannot be shown. ${error.message}`;
  part("picture-trouble").hidden = false;
}

function showMaskState() {
  part("mask-toggle").setAttribute("aria-pressed", board.maskShown);
  const drawing = shown?.drawing; // what was mended is sent anyhow
  part("right-field").classList.toggle("unused", !drawing || drawing.mended || drawing.empty);
}

function announce(words) {
  part("announcement").textContent = words;
}

// === Judging ===

function judge(label) {
  const task = shown;
  if (!task || main.dataset.picture !== "shown") return announce("The picture is not here yet.");
  const trouble = contradiction(task, label);
  if (trouble) {
    announce(trouble);
    return panel.showNotice(trouble);
  }
  const verdict = { label, reason: part("reason").value.trim() || null, reviewer: reviewer.name };
  Object.assign(task, { error: "", reason: verdict.reason, maskRight: part("mask-right").checked });
  session.tally.add(Date.now());
  remember({ task, verdict, state: "…" });
  unkept.remove(task);
  verdicts.give(task, verdict);
  said = `${verdictWords(label)}.`;
  return desk.send();
}

function remember(entry) {
  judged.push(entry);
  judged.splice(0, judged.length - MOST_UNDONE);
  showWork();
}

function showWork() {
  panel.showBefore(judged);
  panel.showCounts(desk.waiting, session.tally);
}

/** Why a verdict does not agree with the mask that was mended; "" if it does. */
function contradiction({ drawing }, label) {
  if (drawing.underWay) return "A stroke is being drawn: end it first.";
  if (label === "unsure" || !drawing.mended) return "";
  if (label === "good" && !drawing.empty) return "The mended mask shows a defect: clear it, or name the defect.";
  if (label !== "good" && drawing.empty) return "The mended mask is empty: draw the defect, or use the predicted mask.";
  return "";
}

function skip() {
  if (!shown) return;
  remember({ task: shown, verdict: null, state: "" });
  desk.skip();
}

/** Goes back to what was judged or skipped last. */
function undo() {
  const last = judged.pop();
  if (!last) return announce("There is nothing to undo.");
  if (last.verdict) {
    session.tally.remove();
    last.verdict.undone = true; // it need not be kept any more
    verdicts.takeBack(last.task);
  }
  showWork();
  said = `${last.verdict ? verdictWords(last.verdict.label) : "Skipping"} undone.`;
  return desk.recall(last.task);
}

function onSettled(task, verdict, error) {
  const at = judged.findIndex((one) => one.verdict === verdict);
  if (at >= 0 && !error) judged[at].state = "kept";
  if (error && !verdict.undone) {
    if (at >= 0) judged.splice(at, 1);
    session.tally.remove();
    task.error = `${verdictWords(verdict.label)} was not kept: ${whyNotKept(error)}`;
    unkept.add(task, task.error);
  }
  showWork();
  desk.settle(task, !error);
}

function onUndone(task, error) {
  if (error) panel.showNotice(`The verdict on ${partWords(task.record)} stands: ${whyNotKept(error)}`);
  desk.settle(task, true);
}

async function judgeAgain(task) {
  key.declined = false;
  task.record = await requests.find(task.id).catch(() => task.record);
  desk.recall(task);
}

/** Asks for more; what fails is shown, and tried again by itself. */
async function refill() {
  await desk.refill();
  part("forget-key").hidden = !key.value;
}

// === Wiring ===

const acts = {
  judge,
  judgeDefect: (number) => {
    const defect = shown?.defects[number - 1];
    if (defect) judge(defect.name);
  },
  skip,
  undo: () => (mending.name === "look" ? undo() : mending.step("undo") || announce("No stroke to undo.")),
  redo: () => mending.step("redo"),
  close: () => mending.name === "polygon" && mending.tools.polygon.close(),
  tool: (name) => shown && mending.choose(name),
  nextClass: () => mending.nextClass(),
  resize: (steps) => mending.resize(steps),
  toggleMask: () => {
    board.maskShown = !board.maskShown;
    showMaskState();
    board.draw();
  },
  reason: () => part("reason").focus(),
  toggleRight: () => part("mask-right").click(),
  zoomIn: () => hand.zoom(),
  zoomOut: () => hand.zoom(1 / 1.5),
  fit: () => hand.fit(),
  move: (x, y) => hand.moveBy(x, y),
};
listenToKeys(acts);
part("skip").addEventListener("click", (event) => event.detail > 1 || skip());
part("undo").addEventListener("click", undo);
part("mask-toggle").addEventListener("click", acts.toggleMask);
part("opacity").addEventListener("input", ({ target }) => {
  board.opacity = target.valueAsNumber;
  board.draw();
});
part("try-now").addEventListener("click", () => {
  key.declined = false;
  refill();
});
part("load-again").addEventListener("click", () => show(shown));
part("show-skipped").addEventListener("click", () => {
  desk.skipped = [];
  refill();
});
part("show-slips").addEventListener("click", () => showSlips(requests));
part("close-slips").addEventListener("click", () => part("slips").close());
part("forget-key").addEventListener("click", () => {
  key.forget();
  part("forget-key").hidden = true;
});
window.addEventListener("beforeunload", (event) => {
  if (verdicts.underWay || unkept.count) event.preventDefault();
});
const showFailure = (reason) => panel.showNotice(`The page failed: ${reason}. Load it again.`);
window.addEventListener("error", (event) => showFailure(event.message));
window.addEventListener("unhandledrejection", (event) => showFailure(event.reason));
connection.keepAsking(refill, () => !desk.current);
if (station !== null) part("station").textContent = `${station} only`;
if (!reviewer.name) await reviewer.ask();
refill();
