// The list of this session's photographs, inspected and queued.

import { byId, createElement } from "../shared/dom.js";
import { formatNumber, translate } from "../shared/language.js";
import { decideAt, markedDecisionText } from "./decision.js";

const SIGNS = { good: "✓", review: "?", defect: "✕" };

export class History {
  /** Calls `onChoose(entry)` when a photograph is clicked. */
  constructor(onChoose) {
    this.list = byId("history");
    this.progress = byId("progress");
    this.onChoose = onChoose;
    this.buttons = new Map();
    this.order = []; // order of arrival, newest first
    this.list.addEventListener("keydown", (event) => this.#move(event));
  }

  /** Adds a photograph below `after`; without it, at the top. */
  add(entry, after) {
    const button = document.createElement("button");
    button.type = "button";
    for (const part of ["thumbnail", "name", "tag", "error"]) button.append(createElement("span", part));
    button.addEventListener("click", () => this.onChoose(entry));
    createElement("li").append(button);
    this.buttons.set(entry, button);
    this.order.splice(this.order.indexOf(after) + 1, 0, entry);
    this.#place(entry);
    this.update(entry, null);
  }

  /** Shows the state of `entry`; `threshold` is the user's, or null for the model's. */
  update(entry, threshold) {
    const button = this.buttons.get(entry);
    const { result, tag, moved = false } = describe(entry, threshold);
    const moves = (button.dataset.result === "failed") !== (result === "failed");
    button.dataset.result = result;
    if (moves) this.#place(entry);
    button.classList.toggle("changed", moved);
    button.querySelector(".name").textContent = entry.file.name;
    button.querySelector(".name").title = entry.file.name;
    button.querySelector(".tag").textContent = tag;
    button.querySelector(".error").textContent = entry.error || entry.wait;
    button.querySelector(".error").hidden = !(entry.error || entry.wait);
  }

  /** Shows the thumbnail of `entry`, or its file extension if the browser cannot decode it. */
  setThumbnail(entry, canvas) {
    const kind = /\.([a-z0-9]{1,5})$/i.exec(entry.file.name)?.[1] ?? "file";
    this.buttons.get(entry).querySelector(".thumbnail").replaceChildren(canvas ?? kind.toUpperCase());
  }

  setCurrent(entry) {
    for (const [other, button] of this.buttons) button.setAttribute("aria-current", other === entry);
    const list = this.list.getBoundingClientRect();
    const box = this.buttons.get(entry).getBoundingClientRect();
    const hidden = box.top < list.top || box.bottom > list.bottom || box.left < list.left || box.right > list.right;
    if (hidden) this.buttons.get(entry).scrollIntoView({ block: "nearest", inline: "nearest" });
  }

  setProgress(entries) {
    const ended = entries.filter(({ state }) => state === "done" || state === "failed");
    const done = entries.filter(({ state }) => state === "done").length;
    this.progress.hidden = entries.length < 2;
    this.progress.querySelector("progress").value = ended.length / entries.length;
    this.progress.querySelector("progress").hidden = ended.length === entries.length;
    const counts = { done: formatNumber(done), all: formatNumber(entries.length) };
    this.progress.querySelector("p").textContent = translate("{done} of {all} inspected", counts);
  }

  /** Moves `entry` to its position: failed entries first, both groups in order of arrival. */
  #place(entry) {
    const button = this.buttons.get(entry);
    const focused = document.activeElement === button;
    const failed = ({ state }) => state === "failed";
    const after = this.order.slice(this.order.indexOf(entry) + 1);
    const next = after.find((other) => failed(other) === failed(entry)) ?? (failed(entry) && this.order.find((other) => !failed(other)));
    this.list.insertBefore(button.parentElement, next ? this.buttons.get(next).parentElement : null);
    if (focused) button.focus();
  }

  #move(event) {
    const step = { ArrowDown: 1, ArrowRight: 1, ArrowUp: -1, ArrowLeft: -1 }[event.key];
    const buttons = [...this.list.querySelectorAll("button")];
    const target = buttons[buttons.indexOf(document.activeElement) + step];
    if (!step || !target) return;
    event.preventDefault();
    target.focus();
    target.click();
  }
}

/** The state of an entry without a result. */
export function busyText({ state }) {
  return state === "waiting" ? translate("Waiting") : translate("Inspecting …");
}

function describe(entry, threshold) {
  if (entry.state === "failed") return { result: "failed", tag: `! ${translate("Not inspected")}` };
  if (entry.state !== "done") return { result: "busy", tag: busyText(entry) };
  const decided = decideAt(entry.decision, threshold);
  const tag = `${SIGNS[decided.verdict]} ${markedDecisionText(decided)}`;
  return { result: decided.verdict, tag, moved: decided.moved };
}
