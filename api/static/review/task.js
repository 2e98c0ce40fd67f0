// One inspection that a person is asked about: its record, its picture, and the mask that is mended.

import { EditableMask } from "./editable_mask.js";

const DEFECT = 255; // the value in masks without classes

export class Task {
  /** `given` is {record, why, labels, shadows} of the service; `requests` fetches its picture. */
  constructor(given, requests) {
    Object.assign(this, { ...given, requests });
    this.drawing = null;
    this.hasClasses = false; // whether each pixel of its mask has a class
    this.bitmap = null;
    this.error = ""; // why the last verdict was not kept
    this.kept = false; // whether the service has a verdict of this page
    this.reopened = false; // somebody wants to see it again: it need not be leased
    this.earlier = null; // what people said before this page's last verdict
    this.work = Promise.resolve(); // what is under way for it, one after another
  }

  get id() {
    return this.record.record_id;
  }

  /** The classes of defects, each {name, value, key}: its value in a mask, and its key 1…9 or "". */
  get defects() {
    const names = this.labels.slice(1);
    return names.map((name, at) => ({ name, value: this.hasClasses ? at + 1 : DEFECT, key: at < 9 ? String(at + 1) : "" }));
  }

  /** Fetches and decodes the picture and its mask, once; fails with an error for people. */
  load() {
    this.loading ??= this.#load().catch((error) => {
      this.loading = null; // another try may do better
      throw error;
    });
    return this.loading;
  }

  /** Gives the picture's memory back; what was mended stays. */
  release() {
    this.bitmap?.close();
    this.bitmap = this.loading = null;
    if (this.drawing?.modified) this.drawing.forgetSteps();
    else this.drawing = null;
  }

  async #load() {
    const [bitmap, mask] = await Promise.all([
      this.requests.picture(this.id),
      this.drawing ? null : this.requests.mask(this.record),
    ]);
    if (mask) Object.assign(this, { hasClasses: mask.hasClasses, drawing: new EditableMask(mask) });
    this.bitmap = bitmap;
  }
}
