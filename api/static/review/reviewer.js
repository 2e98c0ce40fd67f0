// The reviewer's name: that of the user who is logged in, or asked with the first verdict and stored on this device.

import { byId } from "../shared/dom.js";
import { translate } from "../shared/language.js";
import { currentSession } from "../shared/session.js";

const NAME = "segdec.reviewer";
const KEY = /segdec_[\w-]{20,}|(?=\S*\d)(?=\S*[a-z])[^\s@]{30,}/i; // a key of the service, or another long secret
const KEY_REFUSED = translate("This is an API key: everybody could read it beside the verdicts. Enter your name.");

export class Reviewer {
  /** The key of `credentials` must not become the name. */
  constructor(credentials) {
    this.credentials = credentials;
    this.user = null;
    this.isAsked = false;
    document.addEventListener("session", () => this.#showUser());
    if (this.#isKey(this.name ?? "")) localStorage.removeItem(NAME);
    byId("name").addEventListener("input", ({ target }) => target.setCustomValidity(this.#isKey(target.value) ? KEY_REFUSED : ""));
    byId("reviewer").addEventListener("click", () => this.ask());
    byId("name-later").addEventListener("click", () => byId("name-dialog").close());
    byId("name-dialog").querySelector("form").addEventListener("submit", () => this.#keep(byId("name").value.trim()));
    this.#present();
  }

  /** The name, or null. */
  get name() {
    return this.user?.name ?? localStorage.getItem(NAME);
  }

  /** Asks for a log-in if there are users; resolves when that is done. */
  async identify() {
    const { user, has_users: hasUsers } = await currentSession();
    if (hasUsers && !user && !this.credentials.key) await this.credentials.renew("", "");
    await this.#showUser();
  }

  /** Asks for the name if there is none and it was not asked yet; resolves when that is done. */
  async askOnce() {
    if (!this.name && !this.isAsked) await this.ask();
  }

  /** Asks for the name; resolves when the dialog is closed. */
  ask() {
    this.isAsked = true;
    byId("name").value = this.name ?? "";
    byId("name-dialog").showModal();
    return new Promise((resolve) => byId("name-dialog").addEventListener("close", resolve, { once: true }));
  }

  async #showUser() {
    this.user = (await currentSession()).user;
    this.#present();
  }

  #isKey(text) {
    return KEY.test(text) || (text.trim() !== "" && text.trim() === this.credentials.key);
  }

  #keep(name) {
    if (name) localStorage.setItem(NAME, name);
    this.#present();
  }

  #present() {
    byId("reviewer").hidden = this.user !== null; // shown beside the links
    byId("reviewer").textContent = this.name ?? translate("Set reviewer name");
    const label = this.name ? translate("Reviewer: {name}. Change", { name: this.name }) : translate("Set reviewer name");
    byId("reviewer").setAttribute("aria-label", label);
  }
}
