// All data sets, and a form for a new one.

import { attempt } from "../shared/attempt.js";
import { byId, createElement } from "../shared/dom.js";
import { emptyState, whoCan } from "../shared/empty_state.js";
import { formatNumber, translate } from "../shared/language.js";
import { timeText } from "../shared/plant_time.js";

export class DataSetList {
  constructor(requests) {
    this.requests = requests;
    byId("new-data-set").addEventListener("submit", (event) => this.#create(event));
  }

  async load() {
    const dataSets = await attempt(this.requests.credentials, () => this.requests.list());
    byId("list").hidden = !dataSets;
    byId("empty").replaceChildren(...(dataSets?.length === 0 ? [noDataSet()] : []));
    byId("data-sets").replaceChildren(...(dataSets ?? []).map(rowOf));
  }

  async #create(event) {
    event.preventDefault();
    const { name, classes } = event.target.elements;
    const names = classes.value.split(/[,;]/).map((word) => word.trim()).filter(Boolean);
    const made = await attempt(this.requests.credentials, () => this.requests.create(name.value, names));
    if (made) location.assign(addressOf(made.id));
  }
}

function noDataSet() {
  const text = translate("Photographs of defects and of good parts, with labels, train a model.");
  return emptyState(translate("There is no data set yet"), text, whoCan(translate("Create data set"), "engineer"));
}

/** The address of the page of a data set. */
export function addressOf(id) {
  return `datasets?id=${id}`;
}

function rowOf({ id, name, counts, classes, latest_version: version, created_at: created, created_by: author }) {
  const link = createElement("a", "", name);
  link.href = addressOf(id);
  const cells = [
    link,
    formatNumber(counts.photographs),
    formatNumber(counts.labelled),
    classes.join(", ") || "–",
    version === null ? "–" : translate("Version {version}", { version }),
    [timeText(created), author].filter(Boolean).join(", "),
  ];
  const titles = [...byId("list").querySelectorAll("th")].map(({ textContent }) => textContent);
  return createElement("tr", "", ...cells.map((content, at) => {
    const cell = createElement("td", "", content);
    cell.dataset.title = titles[at]; // phones show it beside the value
    return cell;
  }));
}
