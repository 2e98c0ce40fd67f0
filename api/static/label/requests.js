// This page's requests to the service.

import { JSON_TYPE, RecordRequests, base64Of } from "../shared/record_requests.js";
import { readGrey } from "../shared/png.js";

export class Requests extends RecordRequests {
  /** `session` identifies the tab; `dataSet` is the id of the data set; `selection` {state, label} limits `next`. */
  constructor({ credentials, session, dataSet, selection }) {
    super(credentials);
    Object.assign(this, { session, dataSet, selection });
  }

  get path() {
    return `v1/data-sets/${this.dataSet}`;
  }

  /** All data sets, {data_sets}. */
  async dataSets() {
    return this.json("v1/data-sets");
  }

  /** The data set: name, classes, counts. */
  async describe() {
    return this.json(this.path);
  }

  /** Leases up to `count` selected photographs: {photographs, unlabelled}. Those in `skip` are released. */
  async next(count, skip) {
    const body = JSON.stringify({ session: this.session, count, skip, ...this.selection });
    return this.json(`${this.path}/next`, { method: "POST", headers: JSON_TYPE, body });
  }

  /** Leases a photograph, labelled or not: {photographs, unlabelled}. */
  async lease(id) {
    const body = JSON.stringify({ session: this.session });
    return this.json(`${this.path}/photographs/${id}/lease`, { method: "POST", headers: JSON_TYPE, body });
  }

  /** Gives the leases of this page back. */
  async release() {
    const query = new URLSearchParams({ session: this.session });
    await this.ask(`${this.path}/leases?${query}`, { method: "DELETE", keepalive: true });
  }

  /** The decoded photograph, upright. */
  async image(id) {
    const answer = await this.ask(`${this.path}/photographs/${id}/image?form=png`);
    return createImageBitmap(await answer.blob());
  }

  /** A small JPEG of a photograph, as a Blob. */
  async thumbnail(id) {
    return (await this.ask(`${this.path}/photographs/${id}/image?form=thumbnail`)).blob();
  }

  /** The stored mask, {width, height, pixels} with a class in each pixel. */
  async storedMask(id) {
    const answer = await this.ask(`${this.path}/photographs/${id}/mask`);
    return readGrey(new Uint8Array(await answer.arrayBuffer()));
  }

  /** The mask that a model proposes, as `storedMask`. */
  async proposedMask(id) {
    const answer = await this.ask(`${this.path}/photographs/${id}/proposal/mask`);
    return readGrey(new Uint8Array(await answer.arrayBuffer()));
  }

  /**
   * Stores an annotation {label, mask, is_boxes, source}, `mask` a Blob or null, after the annotation `basedOn`; returns
   * the photograph. What the page does not send stays as in that annotation.
   */
  async annotate(id, { mask, ...content }, basedOn) {
    const sent = { ...content, mask: mask && (await base64Of(mask)), based_on: basedOn, session: this.session };
    const options = { method: "PUT", headers: JSON_TYPE, body: JSON.stringify(sent) };
    return this.json(`${this.path}/photographs/${id}/annotation`, options);
  }

  /** An annotation of a photograph by its number, as `annotate` sends it again. */
  async annotation(id, number) {
    const path = `${this.path}/photographs/${id}`;
    const { annotations } = await this.json(`${path}/annotations?before=${number + 1}&limit=1`);
    const { id: _, at, author, has_mask: hasMask, ...content } = annotations[0];
    const mask = hasMask && (await this.ask(`${path}/mask?annotation=${number}`));
    return { ...content, mask: mask ? await mask.blob() : null };
  }

  /** The region {left, top, width, height, pixels} that clicks [{x, y, is_defect}] describe; null if it is empty. */
  async segment(id, clicks) {
    const options = { method: "POST", headers: JSON_TYPE, body: JSON.stringify({ clicks }) };
    const { left, top, png } = await this.json(`${this.path}/photographs/${id}/segment`, options);
    if (png === null) return null;
    const bytes = Uint8Array.from(atob(png), (character) => character.charCodeAt(0));
    return { left, top, ...(await readGrey(bytes)) };
  }
}
