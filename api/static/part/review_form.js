// The form that reviews a part.

import { byId, setText } from "../shared/dom.js";
import { verdictText } from "../shared/record_text.js";
import { currentSession } from "../shared/session.js";

const NAME = "segdec.reviewer"; // as on the review page

/** Connects the form; calls `onReviewed()` after a review was stored. */
export class ReviewForm {
  constructor(requests, onReviewed) {
    Object.assign(this, { requests, onReviewed, form: byId("review-form") });
    this.form.elements.reviewer.value = localStorage.getItem(NAME) ?? "";
    this.#showUser();
    document.addEventListener("session", () => this.#showUser());
    this.form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#save();
    });
  }

  /** Offers the classes of the model that inspected a record. */
  show(record) {
    this.record = record;
    const labels = record.refusal?.labels ?? Object.keys(record.answer.decision.probabilities);
    const options = [...labels, "unsure"].map((label) => new Option(verdictText(label), label));
    this.form.elements.label.replaceChildren(new Option("", ""), ...options);
    this.form.elements.reason.value = "";
  }

  /** A user who is logged in enters no name. */
  async #showUser() {
    const isKnown = (await currentSession()).user !== null;
    this.form.elements.reviewer.disabled = isKnown;
    this.form.elements.reviewer.parentElement.hidden = isKnown;
  }

  async #save() {
    const { label, reviewer = "", reason } = Object.fromEntries(new FormData(this.form));
    if (reviewer) localStorage.setItem(NAME, reviewer.trim());
    setText(byId("review-problem"), "");
    try {
      await this.requests.review(this.record, { label, reviewer: reviewer.trim() || null, reason: reason.trim() || null });
      await this.onReviewed();
    } catch (error) {
      setText(byId("review-problem"), error.message);
    }
  }
}
