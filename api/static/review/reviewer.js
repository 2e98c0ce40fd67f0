// The reviewer's name: asked once, stored on this device.

import { byId } from "../shared/dom.js";

const NAME = "segdec.reviewer";

export class Reviewer {
  constructor() {
    byId("reviewer").addEventListener("click", () => this.ask());
    byId("name-later").addEventListener("click", () => byId("name-dialog").close());
    byId("name-dialog").querySelector("form").addEventListener("submit", () => this.#keep(byId("name").value.trim()));
    this.#present();
  }

  /** The name, or null. */
  get name() {
    return localStorage.getItem(NAME);
  }

  /** Asks for the name; resolves when the dialog is closed. */
  ask() {
    byId("name").value = this.name ?? "";
    byId("name-dialog").showModal();
    return new Promise((resolve) => byId("name-dialog").addEventListener("close", resolve, { once: true }));
  }

  #keep(name) {
    if (name) localStorage.setItem(NAME, name);
    this.#present();
  }

  #present() {
    byId("reviewer").textContent = this.name ?? "Set reviewer name";
    byId("reviewer").setAttribute("aria-label", this.name ? `Reviewer: ${this.name}. Change` : "Set reviewer name");
  }
}
