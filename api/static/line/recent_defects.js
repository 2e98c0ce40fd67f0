// The latest defects, as photographs with their masks.

import { byId, createElement } from "../shared/dom.js";
import { partName } from "../shared/record_text.js";
import { stationName } from "./format.js";
import { OverlayImage } from "./overlay_image.js";

const SIDE_PX = 480;

export class RecentDefects {
  constructor(credentials) {
    this.credentials = credentials;
    this.list = byId("defects").querySelector("ol");
    this.items = new Map(); // by record id: {element, image}
  }

  /** Shows `defects`, newest first, and frees all other pictures. */
  show(defects, clock) {
    byId("no-defects").hidden = defects.length > 0;
    const known = new Set(defects.map((defect) => defect.record_id));
    for (const [id, item] of this.items) if (!known.has(id)) this.forget(id, item);
    defects.forEach((defect, place) => {
      const item = this.items.get(defect.record_id) ?? this.add(defect, clock);
      if (this.list.children[place] !== item.element) this.list.insertBefore(item.element, this.list.children[place] ?? null);
      item.image.load();
    });
  }

  add(defect, clock) {
    const frame = createElement("a", "picture");
    frame.href = `parts/${defect.record_id}`;
    frame.target = "_top"; // also side by side
    frame.setAttribute("aria-label", `${defect.label}, ${partName(defect)}, ${clock.time(defect.inspected_at)}`);
    const about = [createElement("strong", "", defect.label), createElement("span", "", clock.time(defect.inspected_at))];
    const element = createElement("li", "", frame, createElement("p", "", ...about), createElement("p", "which", `${partName(defect)}, ${stationName(defect.station)}`));
    const image = new OverlayImage(frame, { id: defect.record_id, side: SIDE_PX, credentials: this.credentials });
    const item = { element, image };
    this.items.set(defect.record_id, item);
    return item;
  }

  forget(id, { element, image }) {
    image.free();
    element.remove();
    this.items.delete(id);
  }
}
