// Sends verdicts in the background; reports those that were not stored.

import { translate } from "../shared/language.js";
import { writeGrey } from "../shared/png.js";

const CHANGED = [409, 412];
const UNAVAILABLE = [0, 502, 503, 504]; // of the service or a proxy
const MIN_RETRY_MS = 1000;
const MAX_RETRY_MS = 5000;

export class VerdictSender {
  /**
   * Calls `onSubmitted(task, verdict, error)` and `onReverted(task, error)` when a request has ended, `error` null on
   * success, and `onConnection(connected)` after each attempt.
   */
  constructor(requests, { onSubmitted, onReverted, onConnection }) {
    Object.assign(this, { requests, onSubmitted, onReverted, onConnection });
    this.pending = 0;
  }

  /** Sends a verdict {label, reason, reviewer}, with the mask if it was edited or confirmed. */
  submit(task, verdict) {
    const mask = maskOf(task, verdict);
    task.earlier = task.record.review;
    this.#enqueue(task, async () => {
      try {
        const sent = { ...verdict, mask: await mask };
        const isKept = ({ review }) => review?.label === verdict.label && review.reviewer.endsWith(verdict.reviewer ?? "");
        await this.#change(task, () => this.requests.review(task.record, sent), isKept);
        task.stored = true;
        this.onSubmitted(task, verdict, null);
      } catch (error) {
        this.onSubmitted(task, verdict, error);
      }
    });
  }

  /** Reverts the last verdict on `task` if it was stored, in the name of `reviewer`. */
  revert(task, reviewer) {
    this.#enqueue(task, async () => {
      if (!task.stored) return;
      try {
        const isUndone = ({ review }) => review?.reviewed_at === task.earlier?.reviewed_at;
        await this.#change(task, () => this.requests.undo(task.record, reviewer), isUndone);
        task.stored = false;
        this.onReverted(task, null);
      } catch (error) {
        this.onReverted(task, error);
      }
    });
  }

  #enqueue(task, job) {
    this.pending++;
    task.work = task.work.then(job).finally(() => this.pending--);
  }

  /**
   * Changes the record of a task; retries while the service is unavailable.
   *
   * An attempt without a response may have succeeded. Then the next one fails because the record has changed, and
   * `isDone(record)` checks whether it was this change.
   */
  async #change(task, send, isDone) {
    const { revision } = task.record;
    for (let wait = MIN_RETRY_MS, unsure = false; ; wait = Math.min(2 * wait, MAX_RETRY_MS)) {
      try {
        task.record = await send();
        return this.onConnection(true);
      } catch (error) {
        if (!UNAVAILABLE.includes(error.status)) {
          this.onConnection(true);
          const found = unsure && CHANGED.includes(error.status) ? await this.requests.find(task.id).catch(() => null) : null;
          if (found?.revision !== revision + 1 || !isDone(found)) throw error;
          task.record = found;
          return undefined;
        }
      }
      unsure = true;
      this.onConnection(false);
      await new Promise((resolve) => setTimeout(resolve, wait));
    }
  }
}

/** The reason why a change was not stored, as text. */
export function failureText(error) {
  if (error.status === 412) return translate("Another reviewer has changed it.");
  if (error.status === 409) return translate("Its lease expired, and another reviewer has it now.");
  if (error.status === 404) return translate("The record no longer exists.");
  return error.message;
}

async function maskOf({ drawing, maskRight }, { label }) {
  const confirmed = maskRight && label !== "unsure" && !drawing.empty;
  if (label === "good" || !(drawing.modified || confirmed)) return null;
  return writeGrey(drawing.width, drawing.height, drawing.pixels.slice());
}
