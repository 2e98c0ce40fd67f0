// The trends page: defect rate, errors of the model, scores, and counts by class, station and version.

import { attempt } from "../shared/attempt.js";
import { byId, setText } from "../shared/dom.js";
import { emptyState, recordStep } from "../shared/empty_state.js";
import { translate } from "../shared/language.js";
import { askForCredentials } from "../shared/credentials_prompt.js";
import { RecordRequests } from "../shared/record_requests.js";
import { SearchForm } from "../shared/search_form.js";
import { Credentials } from "../shared/credentials.js";
import { enableReports } from "./report_form.js";
import { showErrors } from "./model_errors.js";
import { drawRate, drawScores } from "./plots.js";
import { rateSentence } from "./sentences.js";
import { showClasses, showGroups, showPeriods } from "./tables.js";

const credentials = new Credentials(askForCredentials);
const requests = new RecordRequests(credentials);
const form = new SearchForm(byId("search"), load);
let current = 0; // number of the newest request: answers of earlier ones are ignored

async function load() {
  history.replaceState(null, "", form.address);
  const number = ++current;
  await attempt(credentials, async () => {
    const report = await requests.trends(form.query);
    if (number !== current) return;
    show(report);
    await showErrors(requests, report, form.query, () => number === current);
  });
}

function show({ by, zone, periods, classes, stations, versions }) {
  const isEmpty = periods.every(({ inspected }) => !inspected);
  byId("none").replaceChildren(...(isEmpty ? [noTrends()] : []));
  byId("panels").classList.toggle("empty", isEmpty);
  byId("panels").hidden = false;
  setText(byId("rate-summary"), rateSentence(periods, by));
  drawRate(byId("rate"), periods, zone);
  drawScores(byId("scores"), periods, zone);
  showPeriods(byId("periods"), periods, zone);
  showClasses(byId("classes"), classes);
  showGroups(byId("by-station"), translate("Station"), stations);
  showGroups(byId("by-version"), translate("Version"), versions);
}

function noTrends() {
  const text = translate("This page shows the defect rate, the errors of the model and its scores over days, weeks or months. Choose another period, or record inspections.");
  return emptyState(translate("Nothing was inspected in this period"), text, ...recordStep());
}

enableReports(credentials, () => form.typed);
byId("forget-key").addEventListener("click", () => {
  credentials.forgetKey();
  load();
});
await load();
const names = await requests.names().catch(() => null); // the page works without suggestions
if (names) form.suggest(names);
if (names) form.suggestStations((text) => requests.names(text));
