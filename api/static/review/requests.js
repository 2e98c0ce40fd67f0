// This page's requests to the service.

import { JSON_TYPE, RecordRequests } from "../shared/record_requests.js";

const MAX_SKIPPED = 100;

export class Requests extends RecordRequests {
  /** `session` identifies the tab; `station` null = all stations; `reviewer` has the name. */
  constructor({ credentials, session, station, reviewer }) {
    super(credentials);
    Object.assign(this, { session, station, reviewer });
  }

  /** Up to `count` tasks and the queue length, {tasks, waiting}, without the record ids in `skipped`. */
  async next(count, skipped) {
    const skip = skipped.slice(-MAX_SKIPPED);
    const asked = { session: this.session, count, skip, station: this.station, reviewer: this.reviewer.name };
    const body = JSON.stringify(asked);
    return this.json("v1/review/next", { method: "POST", headers: JSON_TYPE, body });
  }

  /** Stores a verdict {label, reason, reviewer, mask}, `mask` a Blob or null; returns the new record. */
  async review(record, verdict) {
    return super.review(record, { ...verdict, session: this.session });
  }

  /** Reverts the last verdict on a record, in the name of `reviewer` or null; returns the new record. */
  async undo({ record_id: id, revision }, reviewer) {
    const query = new URLSearchParams({ session: this.session, ...(reviewer && { reviewer }) });
    return this.json(`v1/records/${id}/review?${query}`, { method: "DELETE", headers: { "If-Match": `"${revision}"` } });
  }
}
