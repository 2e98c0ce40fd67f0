// One photograph to label: its picture and its editable mask.

import { EditableMask } from "../shared/mask_editor/editable_mask.js";

const NOT_FOUND = 404;

export class Photograph {
  /** `given` describes it as the service does; `classes` are the names of the defects. */
  constructor(given, { requests, drafts, classes }) {
    Object.assign(this, { given, requests, drafts });
    this.hasClasses = true;
    this.defects = classes.map((name, at) => ({ name, value: at + 1, key: at < 9 ? String(at + 1) : "" }));
    this.chosen = this.defects.find(({ name }) => name === given.label) ?? null; // the class that it gets without a mask
    this.drawing = null;
    this.bitmap = null;
    this.error = ""; // why the last label was not stored
    this.work = Promise.resolve(); // its requests, one after another
  }

  get id() {
    return this.given.id;
  }

  /** Fetches and decodes picture and mask, once; continues with a draft that this browser has. */
  load() {
    this.loading ??= this.#load().catch((error) => {
      this.loading = null; // allows a retry
      throw error;
    });
    return this.loading;
  }

  /** Frees the memory; an edited mask stays as a draft. */
  release() {
    this.bitmap?.close();
    this.bitmap = this.loading = this.drawing = null;
  }

  /** Stores the edited mask in this browser. */
  async keepDraft() {
    const { state } = this.drawing;
    await this.drafts.keep(this.#draftId, { state, annotation: this.given.annotation_id });
  }

  /** States whether the mask has rectangles around the defects, not their outlines. */
  setBoxes(isBoxes) {
    this.drawing.isBoxes = isBoxes;
    return this.keepDraft();
  }

  /** Stores a label with its mask in the service. */
  async save(annotation) {
    this.given = await this.requests.annotate(this.id, annotation, this.given.annotation_id);
    await this.drafts.remove(this.#draftId);
  }

  /** The proposal of a model that saving accepts, because nobody has changed it; else null. */
  get accepted() {
    const { proposal } = this.given;
    if (!proposal?.label || this.drawing.modified) return null;
    return proposal.has_mask || !this.chosen ? proposal : null;
  }

  /** Names of the classes in the mask, the one with the largest area first. */
  get drawnClasses() {
    const areas = new Uint32Array(256);
    for (const value of this.drawing.pixels) areas[value]++;
    const drawn = this.defects.filter(({ value }) => areas[value]);
    return drawn.sort((one, other) => areas[other.value] - areas[one.value]).map(({ name }) => name);
  }

  get #draftId() {
    return `${this.requests.dataSet}/${this.given.sha256}`; // another service at this address has the same ids
  }

  async #load() {
    const [bitmap, mask, draft] = await Promise.all([
      this.requests.image(this.id),
      this.#firstMask(),
      this.drafts.find(this.#draftId),
    ]);
    this.drawing = new EditableMask({ ...mask, hasClasses: true, isBoxes: this.given.is_boxes });
    if (draft?.annotation === this.given.annotation_id) this.drawing.restore(draft.state);
    this.bitmap = bitmap;
  }

  /** The stored mask, else the one that a model proposes, else an empty one. */
  async #firstMask() {
    const { width, height, has_mask: hasMask, proposal } = this.given;
    if (hasMask) return this.requests.storedMask(this.id);
    try {
      if (proposal?.has_mask) return await this.requests.proposedMask(this.id);
    } catch (error) {
      if (error.status !== NOT_FOUND) throw error;
      this.given = { ...this.given, proposal: null }; // a newer run has replaced it
    }
    return emptyMask(width, height);
  }
}

function emptyMask(width, height) {
  return { width, height, pixels: new Uint8Array(width * height) };
}
