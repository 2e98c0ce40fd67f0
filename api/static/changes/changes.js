// The page of changes: the audit log in sentences, the newest first.

import { changeText } from "../shared/change_text.js";
import { byId, createElement, setText } from "../shared/dom.js";
import { emptyState, nextStep } from "../shared/empty_state.js";
import { translate } from "../shared/language.js";
import { askForCredentials } from "../shared/credentials_prompt.js";
import { RecordRequests } from "../shared/record_requests.js";
import { timeText } from "../shared/plant_time.js";
import { partName } from "../shared/record_text.js";
import { Credentials } from "../shared/credentials.js";

const PAGE_SIZE = 100;

const credentials = new Credentials(askForCredentials);
const requests = new RecordRequests(credentials);
let who = ""; // of the last search
let nextBefore = null; // cursor of the next page

async function search() {
  who = byId("search").elements.who.value.trim();
  nextBefore = null;
  byId("changes").replaceChildren();
  await loadPage();
}

async function loadPage() {
  const query = new URLSearchParams({ limit: PAGE_SIZE });
  if (who) query.set("who", who);
  if (nextBefore !== null) query.set("before", nextBefore);
  byId("problem").hidden = true;
  try {
    const page = await requests.changes(query);
    byId("changes").append(...page.changes.map(changeItem));
    nextBefore = page.next_before;
  } catch (error) {
    setText(byId("problem"), error.message);
    byId("problem").hidden = false;
  }
  byId("more").hidden = nextBefore === null;
  const isEmpty = !byId("changes").childElementCount && byId("problem").hidden;
  byId("none").replaceChildren(...(isEmpty ? [noChanges()] : []));
  byId("forget-key").hidden = !credentials.key;
}

function noChanges() {
  if (who) return emptyState(translate("No change matches this search"), translate("Names are compared as a whole."));
  const text = translate("This page shows who changed models, settings, users, data sets and verdicts, and when.");
  return emptyState(translate("No changes yet"), text, ...nextStep(translate("Open the settings"), "settings", "engineer"));
}

function changeItem(change) {
  const item = createElement("li", "", createElement("time", "", timeText(change.at)), ` ${changeText(change)}`);
  if (change.record_id !== null) {
    const link = createElement("a", "", partName(change));
    link.href = `parts/${change.record_id}`;
    item.append(" ", link);
  }
  return item;
}

byId("search").addEventListener("submit", (event) => {
  event.preventDefault();
  search();
});
byId("more").addEventListener("click", loadPage);
byId("forget-key").addEventListener("click", () => {
  credentials.forgetKey();
  search();
});
await search();
