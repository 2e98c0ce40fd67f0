// The number of photographs in this session that need a review.

import { byId } from "../shared/dom.js";
import { translateCount } from "../shared/language.js";
import { decideAt } from "./decision.js";

export class ReviewCount {
  /** Calls `onShow(entry)` to show a photograph. */
  constructor(onShow) {
    this.line = byId("reviews");
    this.entries = [];
    this.displayed = null;
    byId("review-next").addEventListener("click", () => {
      this.displayed = this.entries[(this.entries.indexOf(this.displayed) + 1) % this.entries.length];
      onShow(this.displayed);
    });
  }

  /** Counts the `entries` for review at the user's `threshold`; hidden for a single photograph. */
  update(entries, threshold) {
    const doubtful = ({ state, decision }) => state === "done" && decideAt(decision, threshold).verdict === "review";
    this.entries = entries.filter(doubtful);
    this.line.hidden = !this.entries.length || entries.length < 2;
    this.line.querySelector("p").textContent = `? ${translateCount(this.entries.length, "{count} for review", "{count} for review")}`;
  }
}
