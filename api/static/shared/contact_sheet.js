// Photographs of records or data sets. Each is loaded when it becomes visible.

import { createElement } from "./dom.js";
import { translate } from "./language.js";
import { partName } from "./record_text.js";
import { RequestQueue } from "./request_queue.js";

const SIDE_PX = 480;
const MAX_CONCURRENT = 3;

export class ContactSheet {
  /** `requests` has the method `overlay`, which only `add` needs. */
  constructor(list, requests = null) {
    Object.assign(this, { list, requests });
    this.queue = new RequestQueue(MAX_CONCURRENT);
    this.urls = [];
    this.loads = new WeakMap(); // frame → what loads its picture, and describes it
    this.observer = new IntersectionObserver((entries) => this.#load(entries), { rootMargin: "200px" });
  }

  /** Adds the photograph of a record; `about` are the nodes below the name of its part. */
  add(record, ...about) {
    const { record_id: id } = record;
    const load = () => this.requests.overlay(id, SIDE_PX);
    this.addPicture({ name: partName(record), href: `parts/${id}`, alt: translate("Photograph with its mask"), load }, ...about);
  }

  /** Adds a photograph that `load()` returns as a Blob; without `href` it is no link. Returns its element. */
  addPicture({ name, href, alt, load }, ...about) {
    const frame = createElement("div", "picture");
    const link = createElement(href ? "a" : "div", "", frame, createElement("strong", "", name));
    if (href) link.href = href;
    const item = createElement("li", "", link, createElement("p", "", ...about));
    this.loads.set(frame, { load, alt });
    this.list.append(item);
    this.observer.observe(frame);
    return item;
  }

  clear() {
    this.observer.disconnect();
    this.list.replaceChildren();
    for (const url of this.urls.splice(0)) URL.revokeObjectURL(url);
  }

  #load(entries) {
    for (const { target, isIntersecting } of entries) {
      if (!isIntersecting) continue;
      this.observer.unobserve(target);
      this.queue.add(() => this.#show(target));
    }
  }

  async #show(frame) {
    if (!frame.isConnected) return;
    const { load, alt } = this.loads.get(frame);
    try {
      const url = URL.createObjectURL(await load());
      this.urls.push(url);
      const image = createElement("img", "");
      image.alt = alt;
      image.src = url;
      frame.replaceChildren(image);
    } catch (error) {
      frame.textContent = error.status === 404 ? translate("Photograph deleted") : error.message;
    }
  }
}
