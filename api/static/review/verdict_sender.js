// Sends verdicts while the next picture is looked at already. None is lost: what is not kept is told.

import { writeGrey } from "../shared/png.js";

const CHANGED = [409, 412];
const UNAVAILABLE = [0, 502, 503, 504]; // of the service, or of the proxy before it
const MIN_RETRY_MS = 1000;
const MAX_RETRY_MS = 5000;

export class VerdictSender {
  /**
   * `onSubmitted(task, verdict, error)` is told what became of a verdict, `error` null once it is kept, and
   * `onReverted(task, error)` of its taking back; `onConnection(connected)` whether the service answers.
   */
  constructor(requests, { onSubmitted, onReverted, onConnection }) {
    Object.assign(this, { requests, onSubmitted, onReverted, onConnection });
    this.pending = 0;
  }

  /** Sends a verdict {label, reason, reviewer} with the mask, if that was mended, or is called right. */
  submit(task, verdict) {
    const mask = maskOf(task, verdict);
    task.earlier = task.record.review;
    this.#enqueue(task, async () => {
      try {
        const sent = { ...verdict, mask: await mask };
        const isKept = ({ review }) => review?.label === verdict.label && review.reviewer.endsWith(verdict.reviewer ?? "");
        await this.#change(task, () => this.requests.review(task.record, sent), isKept);
        task.kept = true;
        this.onSubmitted(task, verdict, null);
      } catch (error) {
        this.onSubmitted(task, verdict, error);
      }
    });
  }

  /** Takes the last verdict on `task` back, if it was kept. */
  revert(task) {
    this.#enqueue(task, async () => {
      if (!task.kept) return;
      try {
        const isUndone = ({ review }) => review?.reviewed_at === task.earlier?.reviewed_at;
        await this.#change(task, () => this.requests.undo(task.record), isUndone);
        task.kept = false;
        this.onReverted(task, null);
      } catch (error) {
        this.onReverted(task, error);
      }
    });
  }

  #enqueue(task, job) {
    this.pending++;
    task.work = task.work.then(job).finally(() => this.underWay--);
  }

  /**
   * Changes the record of a task; tries again for as long as nothing answers.
   *
   * An attempt without an answer may have been heard: then the next one is told that the record has changed, and
   * `isDone(record)` says whether it was this very change.
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

/** Why a change was not kept, in words. */
export function failureText(error) {
  if (error.status === 412) return "Somebody else has judged it meanwhile.";
  if (error.status === 409) return "Somebody else has it before them now: it was open here for too long.";
  if (error.status === 404) return "The service has no such record any more.";
  return error.message;
}

async function maskOf({ drawing, maskRight }, { label }) {
  const confirmed = maskRight && label !== "unsure" && !drawing.empty;
  if (label === "good" || !(drawing.modified || confirmed)) return null;
  return writeGrey(drawing.width, drawing.height, drawing.pixels.slice());
}
