// The latest defects, as photographs with their masks.

import { byId, createElement, setText } from "../shared/dom.js";
import { stationName } from "./format.js";

const SIDE_PX = 480;
const RETRY_MS = 30_000;

export class RecentDefects {
  constructor(key) {
    this.key = key;
    this.list = byId("defects").querySelector("ol");
    this.items = new Map(); // by record id: {element, url, askedAt}
  }

  /** Shows `defects`, newest first, and frees all other pictures. */
  show(defects, clock) {
    byId("no-defects").hidden = defects.length > 0;
    const known = new Set(defects.map((defect) => defect.record_id));
    for (const [id, item] of this.items) if (!known.has(id)) this.forget(id, item);
    defects.forEach((defect, place) => {
      const item = this.items.get(defect.record_id) ?? this.add(defect, clock);
      if (this.list.children[place] !== item.element) this.list.insertBefore(item.element, this.list.children[place] ?? null);
      this.fetchPicture(defect.record_id, item);
    });
  }

  add(defect, clock) {
    const frame = createElement("a", "picture");
    frame.href = `parts/${defect.record_id}`;
    const about = [createElement("strong", "", defect.label), createElement("span", "", clock.time(defect.inspected_at))];
    const which = defect.part_id ?? `record ${defect.record_id}`;
    const element = createElement("li", "", frame, createElement("p", "", ...about), createElement("p", "which", `${which}, ${stationName(defect.station)}`));
    const item = { element, frame, url: null, askedAt: -Infinity };
    this.items.set(defect.record_id, item);
    return item;
  }

  forget(id, { element, url }) {
    if (url) URL.revokeObjectURL(url);
    element.remove();
    this.items.delete(id);
  }

  /** Fetches a picture once; retries later after a failure. */
  async fetchPicture(id, item) {
    if (item.url || performance.now() - item.askedAt < RETRY_MS) return;
    item.askedAt = performance.now();
    const used = this.key.value;
    const headers = used ? { Authorization: `Bearer ${used}` } : {};
    const answer = await fetch(`v1/records/${id}/overlay?side=${SIDE_PX}`, { headers }).catch(() => null);
    const blob = answer?.ok ? await answer.blob().catch(() => null) : null;
    if (this.items.get(id) !== item) return;
    if (!blob) {
      setText(item.frame, answer?.status === 404 ? "picture deleted" : "no picture");
      if (answer?.status === 404) item.askedAt = Infinity;
      return;
    }
    item.url = URL.createObjectURL(blob);
    const image = createElement("img", "");
    image.alt = "Photograph with its mask";
    image.src = item.url;
    item.frame.replaceChildren(image);
  }
}
