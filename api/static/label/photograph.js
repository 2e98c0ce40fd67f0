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
    this.copied = null; // the label that came with a copied mask
    this.replaced = []; // numbers of the annotations before those that were saved here; null: none
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
  async keepDraft({ state } = this.drawing) {
    await this.drafts.keep(this.#draftId, { state, annotation: this.given.annotation_id });
  }

  /** States whether the mask has rectangles around the defects, not their outlines. */
  setBoxes(isBoxes) {
    this.drawing.isBoxes = isBoxes;
    return this.keepDraft();
  }

  /** Stores a label with its mask in the service. */
  async save(annotation) {
    const { annotation_id: before } = this.given;
    this.given = await this.requests.annotate(this.id, annotation, before);
    this.replaced.push(before);
    await this.drafts.remove(this.#draftId);
  }

  /** Stores the annotation before the last save again, and frees the memory; the mask that was saved becomes a draft. */
  async undoSave() {
    const { id, given, requests } = this;
    await requests.lease(id);
    const number = this.replaced.at(-1);
    const before = number === null ? { label: null, mask: null } : await requests.annotation(id, number);
    const drawn = this.drawing?.modified ? this.drawing : given.has_mask ? await requests.storedMask(id) : null;
    this.given = await requests.annotate(id, before, given.annotation_id);
    this.replaced.pop();
    if (drawn) {
      const drawing = await this.#firstDrawing();
      drawing.replace(drawn.pixels, drawn.isBoxes ?? given.is_boxes);
      await this.keepDraft(drawing);
    }
    this.release();
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
    const [bitmap, drawing, draft] = await Promise.all([
      this.requests.image(this.id),
      this.#firstDrawing(),
      this.drafts.find(this.#draftId),
    ]);
    if (draft?.annotation === this.given.annotation_id) drawing.restore(draft.state);
    Object.assign(this, { bitmap, drawing });
  }

  async #firstDrawing() {
    const mask = await this.#firstMask();
    return new EditableMask({ ...mask, hasClasses: true, isBoxes: this.given.is_boxes });
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
