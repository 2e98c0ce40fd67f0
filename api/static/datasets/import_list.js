// Archives that are or were added to the data set.

import { attempt } from "../shared/attempt.js";
import { byId, createElement } from "../shared/dom.js";
import { formatNumber, translate, translateCount } from "../shared/language.js";
import { timeText } from "../shared/plant_time.js";
import { makeQuestions } from "./import_questions.js";

const REFRESH_MS = 1500;
const MAX_SHOWN = 5;

const COUNTS = {
  added: (count) => translateCount(count, "{count} added", "{count} added"),
  restored: (count) => translateCount(count, "{count} restored", "{count} restored"),
  present: (count) => translateCount(count, "{count} already there", "{count} already there"),
  labelled: (count) => translateCount(count, "{count} labelled", "{count} labelled"),
  kept: (count) => translateCount(count, "{count} keeps its label", "{count} keep their labels"),
  left_out: (count) => translateCount(count, "{count} left out", "{count} left out"),
};

export class ImportList {
  /** Calls `onAdded()` whenever photographs were added. */
  constructor(id, requests, onAdded) {
    Object.assign(this, { id, requests, onAdded });
    this.stored = null; // number of photographs that all imports have stored
    this.waiting = null;
    this.entries = new Map(); // by id: the text of an import and its element
  }

  /** Shows the imports, and again while one is running. */
  async load() {
    clearTimeout(this.waiting);
    const imports = await this.requests.imports(this.id).catch(() => null); // the next one may succeed
    if (imports) this.#show(imports);
    if (!imports || imports.some(({ state }) => state === "running")) this.waiting = setTimeout(() => this.load(), REFRESH_MS);
  }

  #show(imports) {
    byId("imports").replaceChildren(...imports.slice(0, MAX_SHOWN).map((found) => this.#entryOf(found)));
    const stored = imports.reduce((sum, { result }) => sum + result.added + result.restored + result.labelled, 0);
    if (this.stored !== null && stored !== this.stored) this.onAdded();
    this.stored = stored;
  }

  /** The element of an import: a new one if it has changed, since a person may be answering its questions. */
  #entryOf(found) {
    const text = JSON.stringify(found);
    if (this.entries.get(found.id)?.text !== text) {
      const element = makeEntry(found);
      if (found.answerable_until && found.state !== "running") element.append(makeQuestions(found, (answers) => this.#answer(found.id, answers)));
      this.entries.set(found.id, { text, element });
    }
    return this.entries.get(found.id).element;
  }

  async #answer(importId, answers) {
    await attempt(this.requests.credentials, () => this.requests.answerImport(this.id, importId, answers));
    await this.load();
  }
}

function makeEntry({ name, state, result, error, started_at: started, started_by: author }) {
  const title = createElement("strong", "", name || translate("Archive"));
  const about = createElement("span", "hint", [timeText(started), author].filter(Boolean).join(", "));
  const entry = createElement("li", state, title, about, createElement("p", "", stateText(state, result)));
  if (error) entry.append(createElement("p", "problem", error));
  const notes = [...result.problems.map((problem) => problem.text), ...result.notes];
  if (notes.length) {
    const list = createElement("ul", "", ...notes.map((text) => createElement("li", "", text)));
    list.tabIndex = 0; // the keyboard scrolls long lists
    const text = translateCount(notes.length, "{count} note", "{count} notes");
    entry.append(createElement("details", "", createElement("summary", "", text), list));
  }
  return entry;
}

function stateText(state, result) {
  const counts = Object.entries(COUNTS).filter(([name]) => result[name]).map(([name, text]) => text(result[name]));
  if (state === "running") {
    const found = result.found === null ? translate("Being read …") : translate("{count} found", { count: formatNumber(result.found) });
    return [found, ...counts].join(", ");
  }
  return [state === "done" ? translate("Done") : translate("Failed"), ...counts].join(", ");
}
