// The photograph below the zones: that of a recorded part, or a file, which is not sent.

import { byId, createElement } from "../shared/dom.js";
import { translate } from "../shared/language.js";
import { timeText } from "../shared/plant_time.js";
import { partName, servingLabel, verdictText } from "../shared/record_text.js";

export class Reference {
  /** Calls `onPhotograph({bitmap, area})` for a chosen one, with the contours of the inspected area or null; null = none. */
  constructor(requests, { attempt, onPhotograph }) {
    Object.assign(this, { requests, attempt, onPhotograph, parts: [], read: null });
    byId("reference").addEventListener("change", ({ target }) => this.choose(this.parts[target.selectedIndex]));
    byId("reference-file").addEventListener("change", ({ target }) => this.#openFile(target.files[0]));
    for (const [id, step] of [["former-part", -1], ["next-part", 1]]) byId(id).addEventListener("click", () => this.#step(step));
  }

  /** Loads the last parts of a model, and shows the newest; of `size`, if it is given. */
  async load(model, size) {
    this.parts = (await this.attempt(() => this.requests.parts(model))) ?? [];
    const options = this.parts.map((part) => createElement("option", "", `${partName(part)}, ${verdictText(servingLabel(part))}, ${timeText(part.inspected_at)}`));
    byId("reference").replaceChildren(...options);
    byId("reference").disabled = !options.length;
    this.read = null;
    const isFitting = ({ answer: { image } }) => !size || isSameSize(image, size);
    const part = this.parts.find(isFitting) ?? this.parts[0];
    await (part ? this.choose(part) : this.show());
  }

  /** Shows the photograph of a recorded part; returns whether it is shown. */
  async choose(part) {
    const at = this.parts.findIndex(({ record_id: id }) => id === part.record_id);
    byId("reference").selectedIndex = at;
    byId("former-part").disabled = at <= 0;
    byId("next-part").disabled = at < 0 || at >= this.parts.length - 1;
    const area = part.answer?.inspected_area ?? null;
    this.read = async () => ({ bitmap: await this.requests.picture(part.record_id), area });
    return this.show();
  }

  /** Shows the chosen photograph again; returns whether it is shown. */
  async show() {
    const { read } = this;
    const shown = read && (await this.attempt(read));
    const isCurrent = read === this.read && Boolean(shown || !read);
    if (isCurrent) this.onPhotograph(shown);
    return isCurrent;
  }

  async #openFile(file) {
    byId("reference-file").value = "";
    byId("reference").selectedIndex = -1;
    this.read = () => readFile(file);
    await this.show();
  }

  #step(step) {
    const part = this.parts[byId("reference").selectedIndex + step];
    if (part) this.choose(part);
  }
}

/** Whether two photographs {width, height} have the same size. */
export function isSameSize(one, other) {
  return one.width === other.width && one.height === other.height;
}

async function readFile(file) {
  const bitmap = await createImageBitmap(file).catch(() => null);
  if (!bitmap) throw new Error(translate("The browser cannot show {name} as a photograph.", { name: file.name }));
  return { bitmap, area: null };
}
