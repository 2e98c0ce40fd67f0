// The banner with the number of photographs that were not inspected. It is the most prominent state of the page.

import { byId } from "../shared/dom.js";
import { translate, translateCount } from "../shared/language.js";

export class FailedBanner {
  /** Calls `onShow(entry)` to show a photograph, `onRetry(entries)` to inspect some again. */
  constructor({ onShow, onRetry }) {
    this.bar = byId("uninspected");
    this.title = document.title;
    this.entries = [];
    this.displayed = null;
    byId("uninspected-next").addEventListener("click", () => {
      this.displayed = this.entries[(this.entries.indexOf(this.displayed) + 1) % this.entries.length];
      onShow(this.displayed);
    });
    byId("uninspected-retry").addEventListener("click", () => onRetry([...this.entries]));
  }

  /** Counts the failed `entries`; hidden for a single photograph, whose panel shows the failure. */
  update(entries) {
    this.entries = entries.filter(({ state }) => state === "failed");
    const count = this.entries.length;
    const text = translateCount(count, "{count} not inspected", "{count} not inspected");
    this.bar.hidden = !count || entries.length < 2;
    document.title = count ? `${text} – ${this.title}` : this.title;
    if (byId("uninspected-count").textContent === text) return; // screen readers announce every change
    byId("uninspected-count").textContent = text;
    byId("uninspected-hold").textContent = translateCount(
      count,
      "Hold this part: its condition is unknown.",
      "Hold these parts: their condition is unknown.",
    );
  }
}
