// The page of data sets: all of them, or the one that the address names.

import { attempt } from "../shared/attempt.js";
import { Credentials } from "../shared/credentials.js";
import { askForCredentials } from "../shared/credentials_prompt.js";
import { byId, setText } from "../shared/dom.js";
import { isMissing, showMissing } from "../shared/empty_state.js";
import { translate } from "../shared/language.js";
import { ProposalRequests } from "../shared/proposal_requests.js";
import { Proposals } from "../shared/proposals.js";
import { currentSession, hasRole } from "../shared/session.js";
import { DataSetList } from "./data_set_list.js";
import { Findings } from "./findings.js";
import { ImportList } from "./import_list.js";
import { Labels } from "./labels.js";
import { showSteps } from "./next_steps.js";
import { PhotographSheet } from "./photograph_sheet.js";
import { DataSetRequests } from "./requests.js";
import { Upload } from "./upload.js";
import { VersionList } from "./version_list.js";

const credentials = new Credentials(askForCredentials);
const requests = new DataSetRequests(credentials);
const id = new URLSearchParams(location.search).get("id");

async function showDataSet() {
  const found = await attempt(credentials, () => requests.find(id).catch(showProblem));
  if (!found) return;
  let jobs = await requests.trainings(id).catch(() => []); // the page works without them
  const { user } = await currentSession();
  const mayChange = !user || hasRole(user, "engineer");
  const refresh = async () => present((await requests.find(id).catch(() => null)) ?? found);
  const sheet = new PhotographSheet(id, requests, mayChange, refresh);
  const reload = () => Promise.all([refresh(), sheet.load()]);
  const labels = new Labels(id, requests, { onChoose: (label) => sheet.choose(label), onChange: present });
  const imports = new ImportList(id, requests, reload);
  const versions = new VersionList(id, requests);
  const proposals = new Proposals(byId("proposals"), new ProposalRequests(credentials, id), {
    attempt: (act) => attempt(credentials, act),
    onRun: () => requests.trainings(id).then((found) => (jobs = found)).then(refresh).catch(() => {}),
  });
  const findings = new Findings(id, requests, (ids) => sheet.showOnly(ids));

  function present(dataSet) {
    document.title = dataSet.name;
    setText(byId("name"), dataSet.name);
    showSteps(dataSet, jobs);
    labels.show(dataSet);
    sheet.offer(dataSet);
  }

  byId("deletion").addEventListener("submit", async (event) => {
    event.preventDefault();
    const { value } = event.target.elements.name;
    if (await attempt(credentials, () => requests.delete(id, value.trim()))) location.assign("datasets");
  });
  byId("data-set").hidden = false;
  present(found);
  if (mayChange) new Upload(id, requests, { onImport: () => imports.load(), onAdded: reload });
  await Promise.all([sheet.load(), imports.load(), versions.load(), proposals.load(), findings.load()]);
}

function showProblem(error) {
  if (!isMissing(error)) throw error;
  showMissing(translate("This data set does not exist"), translate("All data sets"), "datasets");
}

byId("forget-key").addEventListener("click", () => {
  credentials.forgetKey();
  location.reload();
});
if (id === null) await new DataSetList(requests).load();
else await showDataSet();
