// The inspection page: photographs in, decisions and masks out. Sliders recompute both without a request.

import { byId } from "../shared/dom.js";
import { translate } from "../shared/language.js";
import { askForCredentials } from "../shared/credentials_prompt.js";
import { planDrawing } from "../shared/deciding_plan.js";
import { NO_PLAN } from "../shared/plan_zones.js";
import { readGrey, writeGrey } from "../shared/png.js";
import { findRegions, paintMask } from "../shared/regions.js";
import { Credentials } from "../shared/credentials.js";
import { decideAt, markedDecisionText } from "./decision.js";
import { busyText, History } from "./history.js";
import { inspect } from "./requests.js";
import { listenForFiles } from "./file_input.js";
import { FailedBanner } from "./failed_banner.js";
import { ModelSelect } from "./model_select.js";
import { decode, displayNote, thumbnail } from "./photograph.js";
import { RequestQueue } from "../shared/request_queue.js";
import { labelRegions, rasterizeLabels } from "./region_labels.js";
import * as result from "./result_panel.js";
import { ReviewCount } from "./review_count.js";
import { Sliders } from "./sliders.js";
import { Viewer } from "../shared/viewer/viewer.js";

const MAX_CONCURRENT_REQUESTS = 2;

const main = document.querySelector("main");

const entries = [];
let current = null; // the selected entry
let displayed = null; // the displayed result {entry, scores, found, labels, plan}, or null
let selected = null; // the region that stays highlighted, or null

const credentials = new Credentials(askForCredentials);
const queue = new RequestQueue(MAX_CONCURRENT_REQUESTS);
const history = new History(show);
const failedBanner = new FailedBanner({ onShow: show, onRetry: retry });
const reviewCount = new ReviewCount(show);
const sliders = new Sliders(apply);
const viewer = new Viewer(byId("picture"), { onHover: hover, onSelect: select });
const modelSelect = new ModelSelect(credentials);

// === Inspecting ===

function add(files) {
  if (!files.length) return;
  credentials.declined = false;
  showError("");
  sliders.resetScore(); // new photographs are judged at the model's threshold
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

function retry(failed) {
  credentials.declined = false;
  for (const entry of failed) submit(entry);
}

function submit(entry) {
  Object.assign(entry, { state: "waiting", error: "", model: modelSelect.chosen });
  updateEntry(entry);
  queue.add(() => inspectEntry(entry));
}

async function inspectEntry(entry) {
  entry.state = "running";
  updateEntry(entry);
  const small = thumbnail(entry.file).then((canvas) => history.setThumbnail(entry, canvas));
  try {
    const onWait = (wait) => updateEntry(Object.assign(entry, { wait }));
    Object.assign(entry, await inspect(entry.file, { model: entry.model, credentials, onWait }), { state: "done" });
    announce(`${entry.file.name}: ${markedDecisionText(decideAt(entry.decision, sliders.score))}`);
  } catch (error) {
    fail(entry, error);
  }
  await small;
  showKey();
  if (entry.state === "done" && !modelSelect.models.length) modelSelect.fill();
  updateEntry(entry);
}

function fail(entry, error) {
  Object.assign(entry, { state: "failed", error: error.message });
  announce(`${entry.file.name}: ${translate("Not inspected")}. ${error.message}`);
}

function updateEntry(entry) {
  history.update(entry, sliders.score);
  history.setProgress(entries);
  failedBanner.update(entries);
  reviewCount.update(entries, sliders.score);
  if (entry === current) show(entry);
}

// === Showing ===

async function show(entry) {
  const fresh = entry !== current;
  current = entry;
  history.setCurrent(entry);
  if (entry.state === "done") return showAnswer(entry);
  displayed = null;
  byId("name").textContent = entry.file.name;
  main.dataset.state = entry.state === "failed" ? "failed" : "busy";
  if (entry.state === "failed") result.showState("failed", translate("Not inspected"), entry.error);
  else result.showState("busy", busyText(entry), entry.wait);
  if (fresh) await showPhotograph(entry);
}

/** Shows a photograph that has no result. */
async function showPhotograph(entry) {
  result.showNote("");
  result.showWarnings([]);
  const bitmap = await decode(entry.file);
  if (entry !== current || entry.state === "done") return bitmap?.close();
  byId("view").hidden = !bitmap;
  byId("zoom").hidden = !bitmap;
  byId("no-picture").hidden = Boolean(bitmap);
  if (bitmap) viewer.show(bitmap, bitmap);
}

async function showAnswer(entry) {
  let answer, bitmap, scores;
  try {
    answer = JSON.parse(await entry.json.text());
    [bitmap, scores] = await Promise.all([decode(entry.file), readGrey(maskBytes(answer.mask))]);
  } catch (error) {
    fail(entry, error);
    return updateEntry(entry);
  }
  if (entry !== current) return bitmap?.close();
  displayed = { entry, scores, found: null, labels: rasterizeLabels(scores, answer), plan: NO_PLAN };
  main.dataset.state = "done";
  byId("name").textContent = entry.file.name;
  byId("view").hidden = byId("zoom").hidden = false;
  byId("no-picture").hidden = true;
  const same = bitmap?.width === answer.image.width && bitmap.height === answer.image.height;
  viewer.show(same ? bitmap : null, answer.image, answer.inspected_area);
  sliders.setModelThresholds(answer.decision.threshold, answer.mask.threshold);
  result.showNote(displayNote(bitmap, answer.image));
  if (!same) bitmap?.close();
  result.showFacts(answer);
  result.showProbabilities(answer.decision);
  apply("all");
  const plan = await planDrawing(answer, credentials);
  if (entry !== current) return undefined;
  displayed.plan = plan;
  return showPlan();
}

/** Draws the plan; at the user's threshold it does not decide. */
function showPlan() {
  const moved = decideAt(displayed.entry.decision, sliders.score).moved;
  viewer.setPlan({ ...displayed.plan, ...(moved && { defects: [] }) });
}

function maskBytes(mask) {
  if (mask?.encoding !== "scores") {
    throw new Error(translate("The response has no mask scores: the service is older than this page. Reload the page."));
  }
  return Uint8Array.from(atob(mask.data), (character) => character.charCodeAt(0));
}

/** Recomputes everything that depends on the slider `name`. */
function apply(name) {
  const decides = name === "score" || name === "all";
  if (decides) for (const entry of entries) history.update(entry, sliders.score);
  if (decides) reviewCount.update(entries, sliders.score);
  if (!displayed) return;
  if (decides) {
    result.showDecision(displayed.entry.decision, sliders.score);
    showPlan();
  }
  if (name === "mask" || name === "all") {
    displayed.found = findRegions(displayed.scores, sliders.effective.mask);
    labelRegions(displayed.found, displayed.labels);
    selected = null;
    viewer.setMask(displayed.found);
    result.showRegions(displayed.found.regions, { onHover: hover, onSelect: selectFromList });
  }
  viewer.setOpacity(sliders.opacity);
}

function hover(region) {
  if (!displayed) return;
  result.markRegions(region, selected);
  viewer.highlight(region ?? selected);
}

function select(region) {
  if (!displayed) return;
  selected = region === selected ? null : region;
  hover(region);
}

function selectFromList(region) {
  select(region);
  if (selected) viewer.centre(selected);
}

function showError(text) {
  byId("error").textContent = text;
  byId("error").hidden = !text;
}

function showKey() {
  byId("forget-key").hidden = !credentials.key;
}

function announce(text) {
  byId("announcement").textContent = text;
}

// === Downloads ===

async function saveMask() {
  const { entry, scores, found } = displayed;
  const mask = paintMask(scores.width, scores.height, found.runs);
  save(entry, "mask.png", await writeGrey(scores.width, scores.height, mask));
}

function saveAnswer() {
  save(displayed.entry, "json", displayed.entry.json);
}

function save(entry, ending, blob) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = `${entry.file.name.replace(/\.[^.]*$/, "")}.${ending}`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

// === Wiring ===

const showPageError = (reason) => showError(translate("Page error: {reason}. Reload the page.", { reason }));
window.addEventListener("error", (event) => showPageError(event.message));
window.addEventListener("unhandledrejection", (event) => showPageError(event.reason));
byId("retry").addEventListener("click", () => retry([current]));
byId("models").addEventListener("change", () => {
  sliders.resetScore();
  byId("other-model").hidden = true;
});
byId("save-mask").addEventListener("click", saveMask);
byId("save-json").addEventListener("click", saveAnswer);
byId("forget-key").addEventListener("click", () => {
  credentials.forgetKey();
  showKey();
});
modelSelect.fill().finally(showKey);
listenForFiles(add, showError);
