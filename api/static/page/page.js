// The page: photographs in, decisions and masks out. Everything moved by a slider is worked out here.

import { askKey } from "../shared/key_prompt.js";
import { readGrey, writeGrey } from "../shared/png.js";
import { findRegions, paintMask } from "../shared/regions.js";
import { Key } from "../shared/service.js";
import { decideAt, markedWordsFor } from "./decision.js";
import { History } from "./history.js";
import { inspect } from "./inspecting.js";
import { takeFiles } from "./intake.js";
import { Missed } from "./missed.js";
import { ModelChooser } from "./models.js";
import { decode, noteOn, thumbnail } from "./photograph.js";
import { Queue } from "./queue.js";
import { nameRegions, paintLabels } from "./region_labels.js";
import * as result from "./result.js";
import { Reviews } from "./reviews.js";
import { Sliders } from "./sliders.js";
import { Viewer } from "./viewer.js";

const REQUESTS_AT_ONCE = 2;

const part = (id) => document.getElementById(id);
const main = document.querySelector("main");

const entries = [];
let current = null; // the entry that was chosen
let shown = null; // what is on the page: {entry, scores, found, labels}, once a result is
let picked = null; // the region that stays highlighted

const key = new Key(askKey);
const queue = new Queue(REQUESTS_AT_ONCE);
const history = new History(show);
const missed = new Missed({ onShow: show, onRetry: tryAgain });
const reviews = new Reviews(show);
const sliders = new Sliders(apply);
const viewer = new Viewer(part("picture"), { onPoint: point, onPick: pick });
const chooser = new ModelChooser(key);

// === Inspecting ===

function add(files) {
  if (!files.length) return;
  key.declined = false;
  showTrouble("");
  sliders.resetScore(); // what is new is decided by the model
  let previous;
  for (const file of files) {
    const entry = { file, state: "waiting", wait: "", error: "", decision: null, json: null };
    entries.push(entry);
    history.add(entry, previous);
    previous ??= entry;
    previous = entry;
    submit(entry);
  }
  show(entries[entries.length - files.length]);
}

function tryAgain(failed) {
  key.declined = false;
  for (const entry of failed) submit(entry);
}

function submit(entry) {
  Object.assign(entry, { state: "waiting", error: "", model: chooser.chosen });
  changed(entry);
  queue.add(() => run(entry));
}

async function run(entry) {
  entry.state = "running";
  changed(entry);
  const small = thumbnail(entry.file).then((canvas) => history.setThumbnail(entry, canvas));
  try {
    const onWait = (wait) => changed(Object.assign(entry, { wait }));
    Object.assign(entry, await inspect(entry.file, { model: entry.model, key, onWait }), { state: "done" });
    announce(`${entry.file.name}: ${markedWordsFor(decideAt(entry.decision, sliders.score))}`);
  } catch (error) {
    fail(entry, error);
  }
  await small;
  showKey();
  if (entry.state === "done" && !chooser.models.length) chooser.fill();
  changed(entry);
}

function fail(entry, error) {
  Object.assign(entry, { state: "failed", error: error.message });
  announce(`${entry.file.name}: Not inspected. ${error.message}`);
}

function changed(entry) {
  history.update(entry, sliders.score);
  history.setProgress(entries);
  missed.update(entries);
  reviews.update(entries, sliders.score);
  if (entry === current) show(entry);
}

// === Showing ===

async function show(entry) {
  const fresh = entry !== current;
  current = entry;
  history.setCurrent(entry);
  if (entry.state === "done") return showAnswer(entry);
  shown = null;
  part("name").textContent = entry.file.name;
  main.dataset.state = entry.state === "failed" ? "failed" : "busy";
  if (entry.state === "failed") result.showState("failed", "Not inspected", entry.error);
  else result.showState("busy", entry.state === "waiting" ? "Waiting" : "Inspecting …", entry.wait);
  if (fresh) await showPhotograph(entry);
}

/** The photograph alone, while nothing else is known about it. */
async function showPhotograph(entry) {
  result.showNote("");
  result.showWarnings([]);
  const bitmap = await decode(entry.file);
  if (entry !== current || entry.state === "done") return bitmap?.close();
  part("view").hidden = !bitmap;
  part("zoom").hidden = !bitmap;
  part("no-picture").hidden = Boolean(bitmap);
  if (bitmap) viewer.show(bitmap, bitmap);
}

async function showAnswer(entry) {
  let answer, bitmap, scores;
  try {
    answer = JSON.parse(await entry.json.text());
    [bitmap, scores] = await Promise.all([decode(entry.file), readGrey(bytesOf(answer.mask))]);
  } catch (error) {
    fail(entry, error);
    return changed(entry);
  }
  if (entry !== current) return bitmap?.close();
  shown = { entry, scores, found: null, labels: paintLabels(scores, answer) };
  main.dataset.state = "done";
  part("name").textContent = entry.file.name;
  part("view").hidden = part("zoom").hidden = false;
  part("no-picture").hidden = true;
  const same = bitmap?.width === answer.image.width && bitmap.height === answer.image.height;
  viewer.show(same ? bitmap : null, answer.image, answer.inspected_area);
  sliders.setOwn(answer.decision.threshold, answer.mask.threshold);
  result.showNote(noteOn(bitmap, answer.image));
  if (!same) bitmap?.close();
  result.showFacts(answer);
  result.showProbabilities(answer.decision);
  apply("all");
}

function bytesOf(mask) {
  if (mask?.encoding !== "scores") {
    throw new Error("The answer holds no mask scores. The service is older than this page.");
  }
  return Uint8Array.from(atob(mask.data), (letter) => letter.charCodeAt(0));
}

/** Works out again what the slider `name` decides. */
function apply(name) {
  const decides = name === "score" || name === "all";
  if (decides) for (const entry of entries) history.update(entry, sliders.score);
  if (decides) reviews.update(entries, sliders.score);
  if (!shown) return;
  if (decides) result.showDecision(shown.entry.decision, sliders.score);
  if (name === "mask" || name === "all") {
    shown.found = findRegions(shown.scores, sliders.inForce.mask);
    nameRegions(shown.found, shown.labels);
    picked = null;
    viewer.mark(shown.found);
    result.showRegions(shown.found.regions, { onPoint: point, onPick: pickFromList });
  }
  viewer.setOpacity(sliders.opacity);
}

function point(region) {
  if (!shown) return;
  result.markRegions(region, picked);
  viewer.highlight(region ?? picked);
}

function pick(region) {
  if (!shown) return;
  picked = region === picked ? null : region;
  point(region);
}

function pickFromList(region) {
  pick(region);
  if (picked) viewer.centre(picked);
}

function showTrouble(words) {
  part("trouble").textContent = words;
  part("trouble").hidden = !words;
}

function showKey() {
  part("forget-key").hidden = !key.value;
}

function announce(words) {
  part("announcement").textContent = words;
}

// === Downloads ===

async function saveMask() {
  const { entry, scores, found } = shown;
  const mask = paintMask(scores.width, scores.height, found.runs);
  save(entry, "mask.png", await writeGrey(scores.width, scores.height, mask));
}

function saveAnswer() {
  save(shown.entry, "json", shown.entry.json);
}

function save(entry, ending, blob) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = `${entry.file.name.replace(/\.[^.]*$/, "")}.${ending}`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

// === Wiring ===

takeFiles(add, showTrouble);
const showFailure = (reason) => showTrouble(`The page failed: ${reason}. Load it again.`);
window.addEventListener("error", (event) => showFailure(event.message));
window.addEventListener("unhandledrejection", (event) => showFailure(event.reason));
part("again").addEventListener("click", () => tryAgain([current]));
part("models").addEventListener("change", () => sliders.resetScore());
part("save-mask").addEventListener("click", saveMask);
part("save-json").addEventListener("click", saveAnswer);
part("forget-key").addEventListener("click", () => {
  key.forget();
  showKey();
});
chooser.fill().finally(showKey);
