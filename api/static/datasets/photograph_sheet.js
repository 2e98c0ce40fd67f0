// The photographs of a data set: filtered, selected, labelled and removed, many at once.

import { attempt } from "../shared/attempt.js";
import { ContactSheet } from "../shared/contact_sheet.js";
import { byId, createElement, setText } from "../shared/dom.js";
import { translate, translateCount } from "../shared/language.js";
import { IGNORE, labelBadge, labelText, splitText, UNLABELLED } from "../shared/label_text.js";

const PAGE_SIZE = 60;
const MAX_CONCURRENT = 4;
const ANY = "*";
const REMOVED = "*removed";
const CORRECTED = "*corrected";

export class PhotographSheet {
  /** Calls `onChange()` after labels or photographs have changed; `mayChange` is whether the user may remove some. */
  constructor(id, requests, mayChange, onChange) {
    Object.assign(this, { id, requests, mayChange, onChange });
    this.sheet = new ContactSheet(byId("pictures"));
    this.entries = new Map(); // id → {photograph, item, box, about}
    this.nextAfter = 0;
    this.number = 0; // of the newest search: answers of earlier ones are ignored
    byId("filter").addEventListener("submit", (event) => {
      event.preventDefault();
      this.load();
    });
    byId("filter").elements.label.addEventListener("change", () => this.load());
    byId("more").addEventListener("click", () => this.#loadPage());
    byId("select-all").addEventListener("change", ({ target }) => this.#selectAll(target.checked));
  }

  /** Offers the labels of a data set in the filter and as buttons. */
  offer({ classes }) {
    const { label } = byId("filter").elements;
    const chosen = label.value || ANY;
    const labels = [UNLABELLED, "good", ...classes, IGNORE];
    const options = [
      [ANY, translate("All")],
      ...labels.map((name) => [name, labelText(name)]),
      [CORRECTED, translate("Labelled otherwise than proposed")],
      [REMOVED, translate("Removed")],
    ];
    label.replaceChildren(...options.map(([value, text]) => Object.assign(createElement("option", "", text), { value })));
    label.value = chosen;
    const buttons = ["good", ...classes, IGNORE, UNLABELLED].map((name) => this.#labelButton(name));
    byId("actions").replaceChildren(...buttons, ...(this.mayChange ? [this.#removeButton()] : []));
    this.#showSelection();
  }

  /** Shows only the photographs with this label. */
  choose(label) {
    byId("filter").elements.label.value = label;
    this.load();
  }

  async load() {
    this.#offerLabelling();
    this.entries.clear();
    this.sheet.clear();
    this.nextAfter = 0;
    await this.#loadPage();
  }

  /** Shows only these photographs. */
  async showOnly(ids) {
    const number = ++this.number;
    const ask = (id) => this.requests.photograph(this.id, id);
    const found = await attempt(this.requests.credentials, () => Promise.all(ids.map(ask)));
    if (!found || number !== this.number) return;
    this.entries.clear();
    this.sheet.clear();
    for (const photograph of found) this.#add(photograph);
    byId("more").hidden = true;
    this.#showSelection();
    byId("photographs").scrollIntoView({ block: "nearest" });
  }

  async #loadPage() {
    const number = ++this.number;
    byId("more").disabled = true;
    const page = await attempt(this.requests.credentials, () => this.requests.photographs(this.id, this.#query()));
    if (number !== this.number) return;
    byId("more").disabled = false;
    for (const photograph of page?.photographs ?? []) this.#add(photograph);
    this.nextAfter = page?.next_after ?? null;
    byId("more").hidden = this.nextAfter === null;
    this.#showSelection();
  }

  #query() {
    const query = new URLSearchParams({ after: this.nextAfter, limit: PAGE_SIZE, ...this.#filters });
    const search = byId("filter").elements.search.value.trim();
    if (search) query.set("search", search);
    return query;
  }

  /** The chosen photographs, {state, label} as the service knows them. */
  get #filters() {
    const { value } = byId("filter").elements.label;
    if (value === ANY) return {};
    const states = { [REMOVED]: "removed", [UNLABELLED]: "unlabelled", [CORRECTED]: "corrected" };
    return value in states ? { state: states[value] } : { state: "labelled", label: value };
  }

  /** Links to the page that labels the chosen photographs; it knows no search. */
  #offerLabelling() {
    const { search, label } = byId("filter").elements;
    byId("label-shown").hidden = [ANY, REMOVED].includes(label.value) || search.value.trim() !== "";
    const { state, ...others } = this.#filters;
    byId("label-shown").href = `label?${new URLSearchParams({ data_set: this.id, ...(state !== "unlabelled" && { state }), ...others })}`;
  }

  #add(photograph) {
    const { id, name } = photograph;
    const box = Object.assign(createElement("input", ""), { type: "checkbox" });
    box.setAttribute("aria-label", translate("Select {name}", { name }));
    box.addEventListener("change", () => this.#showSelection());
    const about = createElement("span", "about");
    const load = () => this.requests.thumbnail(this.id, id);
    const open = createElement("a", "", translate("Open"));
    open.href = `label?data_set=${this.id}&photograph=${id}`;
    open.hidden = photograph.removed_at !== null;
    const item = this.sheet.addPicture({ name, alt: name, load }, createElement("label", "check", box, about), " ", open);
    item.querySelector(".picture").addEventListener("click", () => box.click());
    this.entries.set(id, { photograph, item, box, about });
    this.#describe(id);
  }

  #describe(id) {
    const { photograph, about } = this.entries.get(id);
    const notes = [photograph.has_mask && translate("with mask"), splitText(photograph.split), photograph.removed_at && translate("removed")];
    about.replaceChildren(labelBadge(photograph.label), notes.filter(Boolean).map((note) => ` ${note}`).join(","));
  }

  // === Selection ===

  get #selected() {
    return [...this.entries.values()].filter(({ box }) => box.checked).map(({ photograph }) => photograph);
  }

  #selectAll(isChecked) {
    for (const { box } of this.entries.values()) box.checked = isChecked;
    this.#showSelection();
  }

  #showSelection() {
    const count = this.#selected.length;
    const shown = this.entries.size;
    setText(byId("selected"), count ? translateCount(count, "{count} selected", "{count} selected") : translate("Select photographs to label them."));
    setText(byId("summary"), shown ? translateCount(shown, "{count} photograph shown", "{count} photographs shown") : translate("No photographs."));
    byId("select-all").checked = count > 0 && count === shown;
    for (const button of byId("actions").children) button.disabled = !count;
    for (const { item, box } of this.entries.values()) item.classList.toggle("selected", box.checked);
  }

  #labelButton(label) {
    const button = createElement("button", "", label === UNLABELLED ? translate("No label") : labelText(label));
    button.type = "button";
    button.addEventListener("click", () => this.#labelSelected(label || null));
    return button;
  }

  #removeButton() {
    const button = createElement("button", "remove", translate("Remove from the data set"));
    button.type = "button";
    button.addEventListener("click", () => this.#change((photograph) => this.requests.remove(this.id, photograph.id)));
    return button;
  }

  async #labelSelected(label) {
    const masked = this.#selected.filter((photograph) => photograph.has_mask).length;
    const question = translateCount(
      masked,
      "{count} selected photograph has a mask, which the new label replaces. Continue?",
      "{count} selected photographs have masks, which the new label replaces. Continue?",
    );
    if (masked && !confirm(question)) return;
    await this.#change((photograph) => this.requests.label(this.id, photograph, label));
  }

  /** Changes all selected photographs, a few at a time; those that fail stay selected. */
  async #change(change) {
    const waiting = this.#selected;
    const all = waiting.length;
    let failed = 0;
    let problem = null;
    const work = async () => {
      for (let photograph; (photograph = waiting.shift()); ) {
        try {
          this.#replace(await change(photograph));
        } catch (error) {
          failed++;
          problem ??= error;
        }
      }
    };
    for (const button of byId("actions").children) button.disabled = true;
    await Promise.all(Array.from({ length: MAX_CONCURRENT }, work));
    this.#showSelection();
    await attempt(this.requests.credentials, () => (problem ? Promise.reject(this.#describeFailure(problem, failed, all)) : null));
    this.onChange();
  }

  #describeFailure(problem, failed, all) {
    const values = { failed, problem: problem.message };
    return new Error(translateCount(all, "{failed} of {count} photograph not changed: {problem}", "{failed} of {count} photographs not changed: {problem}", values));
  }

  #replace(photograph) {
    const entry = this.entries.get(photograph.id);
    if (!entry) return;
    entry.photograph = photograph;
    entry.box.checked = false;
    this.#describe(photograph.id);
  }
}
