// Who is judging: asked once, kept on this device.

const NAME = "segdec.reviewer";

const part = (id) => document.getElementById(id);

export class Reviewer {
  constructor() {
    part("reviewer").addEventListener("click", () => this.ask());
    part("name-later").addEventListener("click", () => part("name-dialog").close());
    part("name-dialog").querySelector("form").addEventListener("submit", () => this.#keep(part("name").value.trim()));
    this.#present();
  }

  /** The name, or null. */
  get name() {
    return localStorage.getItem(NAME);
  }

  /** Asks for the name; ends when the dialog is closed. */
  ask() {
    part("name").value = this.name ?? "";
    part("name-dialog").showModal();
    return new Promise((resolve) => part("name-dialog").addEventListener("close", resolve, { once: true }));
  }

  #keep(name) {
    if (name) localStorage.setItem(NAME, name);
    this.#present();
  }

  #present() {
    part("reviewer").textContent = this.name ?? "Your name?";
    part("reviewer").setAttribute("aria-label", this.name ? `Reviewer: ${this.name}. Change` : "Say who is judging");
  }
}
