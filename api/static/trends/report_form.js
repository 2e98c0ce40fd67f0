// Downloads reports of a shift, a day, a week or a lot.

import { attempt } from "../shared/attempt.js";
import { byId } from "../shared/dom.js";
import { download } from "../shared/download.js";
import { LANGUAGE } from "../shared/language.js";
import { momentOf } from "../shared/plant_time.js";

/** Connects the buttons; `query()` are the fields of the page. */
export function enableReports(credentials, query) {
  const showProblem = (error) => attempt(credentials, () => Promise.reject(error));
  for (const button of document.querySelectorAll("#report-buttons button")) {
    button.addEventListener("click", async () => {
      const path = `v1/reports/${byId("report-kind").value}?${reportQuery(query(), button.dataset.form)}`;
      button.disabled = true;
      await attempt(credentials, () => download(path, credentials, showProblem));
      button.disabled = false;
    });
  }
}

function reportQuery(search, form) {
  const names = ["station", "metadata"].filter((name) => search.has(name));
  const asked = new URLSearchParams(names.map((name) => [name, search.get(name)]));
  asked.set("format", form);
  asked.set("language", LANGUAGE);
  const moment = momentOf(byId("report-at").value);
  if (moment !== null) asked.set("at", moment);
  return asked;
}
