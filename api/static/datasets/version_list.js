// The versions of a data set: made, compared, exported.

import { attempt } from "../shared/attempt.js";
import { byId, createElement } from "../shared/dom.js";
import { download } from "../shared/download.js";
import { formatNumber, translate, translateCount } from "../shared/language.js";
import { timeText } from "../shared/plant_time.js";
import { labelText } from "../shared/label_text.js";
import { pathOf } from "./requests.js";

const FORMS = { folder: translate("Folder"), coco: "COCO" };
const MAX_SHOWN = 20; // photographs of a comparison

export class VersionList {
  constructor(id, requests) {
    Object.assign(this, { id, requests });
    byId("new-version").addEventListener("submit", (event) => this.#make(event));
    byId("compare").addEventListener("submit", (event) => this.#compare(event));
  }

  async load() {
    const versions = await this.#attempt(() => this.requests.versions(this.id));
    if (!versions) return;
    byId("versions").replaceChildren(...versions.map((version) => this.#entry(version)));
    byId("compare").hidden = versions.length < 2;
    const { from, to } = byId("compare").elements;
    for (const [select, chosen] of [[from, versions[1]], [to, versions[0]]]) {
      const options = versions.map(({ number }) => Object.assign(createElement("option", "", String(number)), { value: number }));
      select.replaceChildren(...options);
      if (chosen) select.value = chosen.number;
    }
  }

  #entry({ number, note, counts, created_at: created, created_by: author, digest }) {
    const title = createElement("strong", "", translate("Version {version}", { version: number }));
    title.title = `SHA-256 ${digest}`;
    const labels = Object.entries(counts.labels).map(([label, count]) => `${labelText(label)}: ${formatNumber(count)}`);
    const about = [timeText(created), author].filter(Boolean).join(", ");
    const exports = Object.entries(FORMS).map(([form, text]) => this.#exportButton(number, form, text));
    return createElement(
      "li",
      "",
      title,
      createElement("span", "hint", about),
      createElement("p", "", labels.join(", ")),
      ...(note ? [createElement("p", "", note)] : []),
      createElement("div", "buttons", createElement("span", "hint", translate("Download as a ZIP file:")), ...exports),
    );
  }

  #exportButton(number, form, text) {
    const button = createElement("button", "", text);
    button.type = "button";
    button.title = translate("Download version {version} as a ZIP file", { version: number });
    const path = `${pathOf(this.id)}/versions/${number}/export?format=${form}`;
    const showProblem = (error) => this.#attempt(() => Promise.reject(error));
    button.addEventListener("click", () => this.#attempt(() => download(path, this.requests.credentials, showProblem)));
    return button;
  }

  async #make(event) {
    event.preventDefault();
    const form = event.target;
    const made = await this.#attempt(() => this.requests.makeVersion(this.id, form.elements.note.value.trim()));
    if (!made) return;
    form.reset();
    await this.load();
  }

  async #compare(event) {
    event.preventDefault();
    const { from, to } = event.target.elements;
    const found = await this.#attempt(() => this.requests.compare(this.id, from.value, to.value));
    if (!found) return;
    const lines = found.photographs.slice(0, MAX_SHOWN).map(changeText);
    const more = found.photographs.length - MAX_SHOWN;
    if (more > 0) lines.push(translate("and {count} more", { count: formatNumber(more) }));
    const list = createElement("ul", "", ...lines.map((text) => createElement("li", "", text)));
    byId("comparison").replaceChildren(createElement("p", "", summaryText(found)), list);
  }

  #attempt(ask) {
    return attempt(this.requests.credentials, ask);
  }
}

function summaryText({ added, removed, relabelled, masks_changed: masks, splits_changed: splits, parts_changed: parts, renamed, unchanged }) {
  return [
    translateCount(added, "{count} photograph added", "{count} photographs added"),
    translateCount(removed, "{count} removed", "{count} removed"),
    translateCount(relabelled, "{count} with another label", "{count} with another label"),
    translateCount(masks, "{count} with another mask", "{count} with another mask"),
    translateCount(splits, "{count} with another split", "{count} with another split"),
    translateCount(parts, "{count} with another part", "{count} with another part"),
    translateCount(renamed, "{count} renamed", "{count} renamed"),
    translateCount(unchanged, "{count} unchanged", "{count} unchanged"),
  ].join(", ");
}

function changeText({ name, name_before: nameBefore, label_before: before, label_after: after, ...changed }) {
  if (before === null) return translate("{name}: added, {label}", { name, label: labelText(after) });
  if (after === null) return translate("{name}: removed, {label}", { name, label: labelText(before) });
  if (before !== after) return translate("{name}: {old} → {label}", { name, old: labelText(before), label: labelText(after) });
  if (changed.mask_changed) return translate("{name}: another mask", { name });
  if (changed.split_changed) return translate("{name}: another split", { name });
  if (changed.part_changed) return translate("{name}: another part", { name });
  return translate("{name}: renamed, before {old}", { name, old: nameBefore });
}
