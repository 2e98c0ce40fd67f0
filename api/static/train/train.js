// The page of trainings: order one, watch it, use its model.

import { attempt } from "../shared/attempt.js";
import { byId } from "../shared/dom.js";
import { showMissing } from "../shared/empty_state.js";
import { translate } from "../shared/language.js";
import { Credentials } from "../shared/credentials.js";
import { askForCredentials } from "../shared/credentials_prompt.js";
import { JobDetail } from "./job_detail.js";
import { showJobs, showWorkers } from "./job_list.js";
import { NewTraining } from "./new_training.js";
import { TrainingRequests } from "./requests.js";

const REFRESH_MS = 3000;

const query = new URLSearchParams(location.search);
const credentials = new Credentials(askForCredentials);
const requests = new TrainingRequests(credentials);
const run = (act) => attempt(credentials, act);

let hasDataSets = false;
let older = []; // trainings of earlier pages

async function showOverview() {
  const form = new NewTraining(requests, { run, onStarted: ({ id }) => (location.href = `train?job=${id}`) });
  const chosen = query.get("data_set");
  const isKnown = await run(async () => {
    await form.load(Number(chosen));
    return chosen === null || form.dataSets.some(({ id }) => id === Number(chosen));
  });
  if (isKnown === false) return showMissing(translate("This data set does not exist"), translate("All data sets"), "datasets");
  hasDataSets = form.dataSets.length > 0;
  byId("new").parentElement.hidden = !hasDataSets;
  return repeat(refreshOverview);
}

async function refreshOverview() {
  const [{ jobs, next_before: before }, workers] = await Promise.all([requests.jobs(), requests.workers()]);
  showJobs([...jobs, ...older], hasDataSets);
  showWorkers(workers);
  if (!older.length) byId("older").dataset.before = before ?? "";
  byId("older").hidden = !byId("older").dataset.before;
}

async function showOlder() {
  const { jobs, next_before: before } = await requests.jobs(byId("older").dataset.before);
  older = [...older, ...jobs];
  byId("older").dataset.before = before ?? "";
  await refreshOverview();
}

async function showDetail(id) {
  byId("overview").hidden = true;
  const detail = new JobDetail(id, requests, { run, onChanged: () => detail.refresh() });
  await repeat(() => detail.refresh());
}

/** Runs `act` now and regularly while the page is visible, until it returns true. */
async function repeat(act) {
  if (!document.hidden && (await run(act)) === true) return;
  setTimeout(() => repeat(act), REFRESH_MS);
}

byId("older").addEventListener("click", () => run(showOlder));
byId("forget-key").addEventListener("click", () => {
  credentials.forgetKey();
  location.reload();
});
if (query.has("job")) showDetail(Number(query.get("job")));
else showOverview();
