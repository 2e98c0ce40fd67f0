// One review task: the record, its picture and its editable mask.

import { EditableMask } from "../shared/mask_editor/editable_mask.js";

const DEFECT = 255; // the value in masks without classes

export class Task {
  /** `given` is {record, why, labels, shadows} from the service; `requests` fetches picture and mask. */
  constructor(given, requests) {
    Object.assign(this, { ...given, requests });
    this.drawing = null;
    this.hasClasses = false; // whether the mask has a class for each pixel
    this.bitmap = null;
    this.isUsual = false; // confirmed on this page
    this.error = ""; // why the last verdict was not stored
    this.stored = false; // whether the service stored a verdict of this page
    this.reopened = false; // reopened by the reviewer: needs no lease
    this.earlier = null; // the review before this page's last verdict
    this.work = Promise.resolve(); // its requests, one after another
  }

  get id() {
    return this.record.record_id;
  }

  /** The defect classes, each {name, value, key}: mask value, and key 1…9 or "". */
  get defects() {
    const names = this.labels.slice(1);
    return names.map((name, at) => ({ name, value: this.hasClasses ? at + 1 : DEFECT, key: at < 9 ? String(at + 1) : "" }));
  }

  /** Fetches and decodes picture and mask, once. */
  load() {
    this.loading ??= this.#load().catch((error) => {
      this.loading = null; // allows a retry
      throw error;
    });
    return this.loading;
  }

  /** Frees the picture's memory; keeps an edited mask. */
  release() {
    this.bitmap?.close();
    this.bitmap = this.loading = null;
    if (this.drawing?.modified) this.drawing.forgetSteps();
    else this.drawing = null;
  }

  async #load() {
    const [bitmap, mask] = await Promise.all([
      this.requests.picture(this.id),
      this.drawing ? null : this.requests.mask(this.id),
    ]);
    if (mask) Object.assign(this, { hasClasses: mask.hasClasses, drawing: new EditableMask(mask) });
    this.bitmap = bitmap;
  }
}
