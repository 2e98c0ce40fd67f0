// The photograph of the last inspection, if it is not good, beside its verdict.

import { byId } from "../shared/dom.js";
import { translate } from "../shared/language.js";
import { OverlayImage } from "./overlay_image.js";

const SIDE_PX = 1400;

export class LastPhotograph {
  constructor(credentials) {
    this.credentials = credentials;
    this.image = null;
  }

  /** Shows the photograph of an inspection; none if it is good or null. */
  show(last) {
    const shown = last && last.verdict !== "good" ? last.record_id : null;
    if (shown !== (this.image?.id ?? null)) this.#replace(shown);
    this.image?.load();
  }

  #replace(id) {
    this.image?.free();
    const frame = byId("photograph");
    frame.replaceChildren();
    frame.hidden = id === null;
    if (id === null) this.image = null;
    else {
      frame.href = `parts/${id}`;
      frame.target = "_top";
      frame.setAttribute("aria-label", translate("Open the last part"));
      this.image = new OverlayImage(frame, { id, side: SIDE_PX, credentials: this.credentials });
    }
  }
}
