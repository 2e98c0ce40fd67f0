// The line above the list: how many photographs of the session somebody has to look at.

import { decideAt } from "./decision.js";

export class ReviewCount {
  /** `onShow(entry)` is told which photograph to show. */
  constructor(onShow) {
    this.line = document.getElementById("reviews");
    this.entries = [];
    this.displayed = null;
    document.getElementById("review-next").addEventListener("click", () => {
      this.displayed = this.entries[(this.entries.indexOf(this.displayed) + 1) % this.entries.length];
      onShow(this.displayed);
    });
  }

  /** Counts those of `entries`, in their order, that are for review at the user's `threshold`; one alone says so. */
  update(entries, threshold) {
    const doubtful = ({ state, decision }) => state === "done" && decideAt(decision, threshold).verdict === "review";
    this.entries = entries.filter(doubtful);
    this.line.hidden = !this.entries.length || entries.length < 2;
    this.line.querySelector("p").textContent = `? ${this.entries.length} for review`;
  }
}
