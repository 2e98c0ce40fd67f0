// The photograph of an inspection with its mask, in a frame.

import { createElement, setText } from "../shared/dom.js";
import { translate } from "../shared/language.js";

const RETRY_MS = 30_000;

export class OverlayImage {
  /** Shows record `id` in the element `frame`, at most `side` px long or high. */
  constructor(frame, { id, side, credentials }) {
    Object.assign(this, { frame, id, side, credentials, url: null, askedAt: -Infinity, freed: false });
  }

  /** Fetches the photograph once; retries later after a failure. */
  async load() {
    if (this.url || performance.now() - this.askedAt < RETRY_MS) return;
    this.askedAt = performance.now();
    const used = this.credentials.key;
    const headers = used ? { Authorization: `Bearer ${used}` } : {};
    const answer = await fetch(`v1/records/${this.id}/overlay?side=${this.side}`, { headers }).catch(() => null);
    const blob = answer?.ok ? await answer.blob().catch(() => null) : null;
    if (this.freed) return;
    if (!blob) {
      setText(this.frame, answer?.status === 404 ? translate("photograph deleted") : translate("no photograph"));
      if (answer?.status === 404) this.askedAt = Infinity;
      return;
    }
    this.url = URL.createObjectURL(blob);
    const image = createElement("img", "");
    image.alt = translate("Photograph with its mask");
    image.src = this.url;
    this.frame.replaceChildren(image);
  }

  /** Removes the photograph from the memory. */
  free() {
    this.freed = true;
    if (this.url) URL.revokeObjectURL(this.url);
  }
}
