// The search page: parts by their facts, as a table or as photographs.

import { attempt } from "../shared/attempt.js";
import { ContactSheet } from "../shared/contact_sheet.js";
import { byId, createElement, setText } from "../shared/dom.js";
import { download } from "../shared/download.js";
import { emptyState, nextStep, recordStep } from "../shared/empty_state.js";
import { translate, translateCount } from "../shared/language.js";
import { askForCredentials } from "../shared/credentials_prompt.js";
import { RecordRequests } from "../shared/record_requests.js";
import { timeText } from "../shared/plant_time.js";
import { servingLabel } from "../shared/record_text.js";
import { SearchForm } from "../shared/search_form.js";
import { Credentials } from "../shared/credentials.js";
import { verdictBadge } from "../shared/verdict_badge.js";
import { AddToDataSet } from "./add_to_data_set.js";
import { addRow } from "./table_row.js";

const PAGE_SIZE = 50;

const credentials = new Credentials(askForCredentials);
const requests = new RecordRequests(credentials);
const form = new SearchForm(byId("search"), search);
const sheet = new ContactSheet(byId("pictures"), requests);
const rows = byId("table").querySelector("tbody");

let found = 0; // shown records
let nextBefore = null; // cursor of the next page
let current = 0; // number of the newest search: answers of earlier ones are ignored

/** Starts a new search with the values of the form. */
async function search() {
  history.replaceState(null, "", form.address);
  rows.replaceChildren();
  sheet.clear();
  found = 0;
  nextBefore = null;
  setText(byId("summary"), translate("Searching …"));
  await loadPage();
}

async function loadPage() {
  const number = ++current;
  const query = form.query;
  query.set("limit", PAGE_SIZE);
  if (nextBefore !== null) query.set("before", nextBefore);
  byId("more").disabled = true;
  const page = await attempt(credentials, () => requests.search(query));
  if (number !== current) return;
  byId("more").disabled = false;
  if (page) show(page);
  else setText(byId("summary"), "");
}

function show({ records, next_before: next }) {
  for (const record of records) {
    addRow(rows, record);
    sheet.add(record, verdictBadge(servingLabel(record)), ` ${timeText(record.inspected_at)}`);
  }
  found += records.length;
  nextBefore = next;
  byId("more").hidden = next === null;
  setText(byId("summary"), summaryText());
  byId("tools").hidden = !found && !form.query.size;
  byId("none").replaceChildren(...(found ? [] : [form.query.size ? noMatch() : noParts()]));
  for (const button of document.querySelectorAll("#exports button, #add-to-data-set")) button.disabled = !found;
}

function noParts() {
  const text = translate("This page finds inspected parts by number, verdict, station and time. The service records what /v1/inspect gets; photographs of the page Inspect are not recorded.");
  return emptyState(translate("No inspection is recorded yet"), text, ...recordStep());
}

function noMatch() {
  const hint = form.query.has("part_id") ? [createElement("p", "", translate("A part is found by its whole number only."))] : [];
  return createElement("div", "empty-state", ...hint, ...nextStep(translate("Show all inspections"), "parts"));
}

function summaryText() {
  if (!found) return translate("No inspection matches this search.");
  if (nextBefore === null) return translateCount(found, "{count} inspection", "{count} inspections");
  return translateCount(found, "The newest inspection", "The newest {count} inspections");
}

async function exportResults({ currentTarget: button }) {
  const query = form.query;
  query.set("format", button.dataset.form);
  const showProblem = (error) => attempt(credentials, () => Promise.reject(error));
  button.disabled = true;
  await attempt(credentials, () => download(`v1/records/export?${query}`, credentials, showProblem));
  button.disabled = false;
}

function showView() {
  const pictures = document.querySelector("input[name=view]:checked").value === "pictures";
  byId("scroll").hidden = pictures;
  byId("pictures").hidden = !pictures;
}

new AddToDataSet(requests, () => form.query);
byId("more").addEventListener("click", loadPage);
for (const button of document.querySelectorAll("#exports button")) button.addEventListener("click", exportResults);
for (const choice of document.querySelectorAll("input[name=view]")) choice.addEventListener("change", showView);
byId("forget-key").addEventListener("click", () => {
  credentials.forgetKey();
  search();
});
showView();
await search();
const names = await requests.names().catch(() => null); // the search works without suggestions
if (names) form.suggest(names);
if (names) form.suggestStations((text) => requests.names(text));
