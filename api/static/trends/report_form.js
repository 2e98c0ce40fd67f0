// Downloads reports of a shift, a day, a week or a lot.

import { byId } from "../shared/dom.js";
import { momentOf } from "../shared/plant_time.js";
import { saveFile } from "../shared/save_file.js";

/** Connects the buttons; `query()` are the fields of the page, and `attempt(ask)` runs a request and shows its error. */
export function enableReports(requests, query, attempt) {
  for (const button of document.querySelectorAll("#report-buttons button")) {
    button.addEventListener("click", async () => {
      button.disabled = true;
      const kind = byId("report-kind").value;
      const file = await attempt(() => requests.report(kind, reportQuery(query()), button.dataset.form));
      if (file) saveFile(file, `report-${kind}.${button.dataset.form}`);
      button.disabled = false;
    });
  }
}

function reportQuery(search) {
  const names = ["station", "metadata"].filter((name) => search.has(name));
  const asked = new URLSearchParams(names.map((name) => [name, search.get(name)]));
  const moment = momentOf(byId("report-at").value);
  if (moment !== null) asked.set("at", moment);
  return asked;
}
