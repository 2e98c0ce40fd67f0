// The page of an inspected part: photograph, verdict, review, changes, other inspections.

import { byId, createElement, setText } from "../shared/dom.js";
import { isMissing, showMissing, wrongAddressText } from "../shared/empty_state.js";
import { translate } from "../shared/language.js";
import { askForCredentials } from "../shared/credentials_prompt.js";
import { RecordRequests } from "../shared/record_requests.js";
import { planDrawing } from "../shared/deciding_plan.js";
import { NO_PLAN } from "../shared/plan_zones.js";
import { changeText } from "../shared/change_text.js";
import { timeText } from "../shared/plant_time.js";
import { partName, servingLabel, verdictKind, verdictText, warningText } from "../shared/record_text.js";
import { findRegions } from "../shared/regions.js";
import { Credentials } from "../shared/credentials.js";
import { drawHeatMap } from "../shared/viewer/heat_map.js";
import { Viewer } from "../shared/viewer/viewer.js";
import { ReviewForm } from "./review_form.js";
import { deletionText, explanationText, factsOf, messageText, reviewText, scoreSentence } from "./sentences.js";

const MAX_INSPECTIONS = 50;
const NO_MASK = { regions: [], runs: [] };
const ANY_CLASS = 1 / 255; // lowest value of a defect in a mask

const requests = new RecordRequests(new Credentials(askForCredentials));
const viewer = new Viewer(byId("picture"));
const reviewForm = new ReviewForm(requests, load);
const recordId = location.pathname.split("/").at(-1);
const drawn = { mask: NO_MASK, heatMap: null, plan: NO_PLAN };

async function load() {
  try {
    const record = await requests.find(recordId).catch(showProblem);
    if (!record) return;
    show(record);
    await Promise.all([showPicture(record), showChanges(), showMessages(), showInspections(record), showQrCode()]);
  } catch (error) {
    setText(byId("problem"), error.message);
    byId("problem").hidden = false;
  }
}

function showProblem(error) {
  if (!isMissing(error)) throw error;
  showMissing(translate("This inspection does not exist"), translate("Show the inspected parts"), "parts", wrongAddressText());
}

function show(record) {
  const label = servingLabel(record);
  document.title = partName(record);
  setText(byId("part"), partName(record));
  setText(byId("word"), verdictText(label));
  byId("verdict").dataset.kind = verdictKind(label);
  setText(byId("score"), scoreSentence(record));
  setText(byId("explanation"), explanationText(record));
  byId("warnings").replaceChildren(...(record.answer?.warnings ?? []).map((warning) => createElement("li", "", warningText(warning))));
  setText(byId("review"), reviewText(record.review));
  const pairs = factsOf(record).map(([name, value]) => [createElement("dt", "", name), createElement("dd", "", value)]);
  byId("facts").replaceChildren(...pairs.flat());
  reviewForm.show(record);
  byId("stage").hidden = byId("side").hidden = false;
}

async function showPicture(record) {
  const { record_id: id, review, has_heat_map: hasHeatMap } = record;
  const { width, height } = (record.answer ?? record.refusal).image;
  const which = review?.corrected_mask ? "reviewed" : "predicted";
  const [picture, mask, scores, plan] = await Promise.all([
    requests.picture(id).catch((error) => setText(byId("picture-problem"), deletionText(record.picture) ?? error.message)),
    requests.mask(id, which),
    hasHeatMap ? requests.heatMap(id) : null,
    record.answer ? planDrawing(record.answer, requests.credentials) : NO_PLAN,
  ]);
  viewer.show(picture ?? null, { width, height }, record.answer?.inspected_area);
  drawn.mask = findRegions(mask, ANY_CLASS);
  drawn.heatMap = scores && drawHeatMap(scores);
  drawn.plan = plan;
  byId("show-plan").parentElement.hidden = !record.answer?.plan;
  byId("show-heat-map").disabled = !scores;
  byId("show-heat-map").checked = Boolean(scores) && !drawn.mask.regions.length;
  draw();
}

function draw() {
  viewer.setHeatMap(byId("show-heat-map").checked ? drawn.heatMap : null);
  viewer.setPlan(byId("show-plan").checked ? drawn.plan : NO_PLAN);
  viewer.setMask(byId("show-mask").checked ? drawn.mask : NO_MASK);
}

async function showQrCode() {
  byId("qr-code").src = URL.createObjectURL(await requests.qrCode(recordId));
}

async function showChanges() {
  const changes = await requests.changesOf(recordId);
  const items = changes.map((change) => createElement("li", "", createElement("time", "", timeText(change.at)), ` ${changeText(change)}`));
  byId("changes").replaceChildren(...items);
  byId("no-changes").hidden = items.length > 0;
}

async function showMessages() {
  const messages = await requests.messagesOf(recordId);
  byId("messages").parentElement.hidden = messages.length === 0;
  byId("messages").replaceChildren(...messages.map((message) => createElement("li", "", messageText(message))));
}

async function showInspections({ part_id: part, record_id: id }) {
  const query = new URLSearchParams({ part_id: part ?? "", limit: MAX_INSPECTIONS });
  const records = part === null ? [] : (await requests.search(query)).records;
  byId("inspections").parentElement.hidden = records.length < 2;
  byId("inspections").replaceChildren(...records.map((record) => inspectionItem(record, id)));
}

function inspectionItem(record, id) {
  const link = createElement("a", "", timeText(record.inspected_at));
  link.href = `parts/${record.record_id}`;
  if (record.record_id === id) link.setAttribute("aria-current", "page");
  const where = record.station ? `, ${record.station}` : "";
  return createElement("li", "", link, ` ${verdictText(servingLabel(record))}${where}`);
}

for (const name of ["show-mask", "show-plan", "show-heat-map"]) byId(name).addEventListener("change", draw);
await load();
