// Photographs of records with their masks. Each is loaded when it becomes visible.

import { createElement } from "./dom.js";
import { translate } from "./language.js";
import { partName } from "./record_text.js";
import { RequestQueue } from "./request_queue.js";

const SIDE_PX = 480;
const MAX_CONCURRENT = 3;

export class ContactSheet {
  constructor(list, requests) {
    Object.assign(this, { list, requests });
    this.queue = new RequestQueue(MAX_CONCURRENT);
    this.urls = [];
    this.observer = new IntersectionObserver((entries) => this.#load(entries), { rootMargin: "200px" });
  }

  /** Adds the photograph of a record; `about` are the nodes below the name of its part. */
  add(record, ...about) {
    const frame = createElement("div", "picture");
    const link = createElement("a", "", frame, createElement("strong", "", partName(record)));
    link.href = `parts/${record.record_id}`;
    frame.dataset.record = record.record_id;
    this.list.append(createElement("li", "", link, createElement("p", "", ...about)));
    this.observer.observe(frame);
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
    try {
      const url = URL.createObjectURL(await this.requests.overlay(frame.dataset.record, SIDE_PX));
      this.urls.push(url);
      const image = createElement("img", "");
      image.alt = translate("Photograph with its mask");
      image.src = url;
      frame.replaceChildren(image);
    } catch (error) {
      frame.textContent = error.status === 404 ? translate("Photograph deleted") : error.message;
    }
  }
}
