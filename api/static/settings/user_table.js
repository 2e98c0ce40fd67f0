// The users: adding, changing and removing them.

import { attempt } from "../shared/attempt.js";
import { byId, createElement, setText } from "../shared/dom.js";
import { timeText } from "../shared/record_text.js";

const ROLES = ["operator", "reviewer", "quality", "engineer", "administrator"];

export class UserTable {
  constructor(requests, key) {
    Object.assign(this, { requests, key, form: byId("new-user") });
    this.form.elements.role.append(...roleOptions());
    this.form.elements.screen.addEventListener("change", () => this.#showPassword());
    this.form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#add();
    });
    byId("password-cancel").addEventListener("click", () => byId("password-dialog").close());
    this.#showPassword();
  }

  /** Shows the users, if the caller may see them. */
  async load() {
    await this.#change(() => this.requests.users());
  }

  #present(users) {
    byId("users").hidden = false;
    byId("user-rows").replaceChildren(...users.map((user) => this.#row(user)));
  }

  #row(user) {
    const { name, is_screen: isScreen, created_at: added } = user;
    const role = createElement("select", "", ...roleOptions());
    role.value = user.role;
    role.setAttribute("aria-label", `Role of ${name}`);
    role.addEventListener("change", () => this.#change(() => this.requests.changeUser(name, { role: role.value })));
    const secret = isScreen ? button("Make a link", () => this.#makeLink(name)) : button("Set password", () => this.#askPassword(name));
    const remove = button("Remove", () => this.#remove(name));
    const cells = [isScreen ? `${name} (screen)` : name, role, timeText(added), createElement("div", "buttons", secret, remove)];
    return createElement("tr", "", ...cells.map((cell) => createElement("td", "", cell)));
  }

  async #add() {
    const { name, role, password, screen } = this.form.elements;
    const user = { name: name.value, role: role.value, password: screen.checked ? null : password.value };
    if (!(await this.#change(() => this.requests.addUser(user)))) return;
    const { checked } = screen;
    this.form.reset();
    this.#showPassword();
    if (checked) await this.#makeLink(user.name.trim().toLowerCase());
  }

  async #remove(name) {
    if (confirm(`Remove ${name}? Sessions of ${name} end at once.`)) await this.#change(() => this.requests.removeUser(name));
  }

  async #makeLink(name) {
    const link = await attempt(this.key, () => this.requests.makeLink(name));
    if (!link) return;
    const address = new URL(link.path, document.baseURI).href;
    setText(byId("link"), `Open this address on the screen '${name}', once, before ${timeText(link.expires_at)}: ${address}`);
  }

  #askPassword(name) {
    const dialog = byId("password-dialog");
    byId("password-title").textContent = `Password of ${name}`;
    byId("user-password").value = "";
    dialog.querySelector("form").onsubmit = async (event) => {
      event.preventDefault();
      const password = byId("user-password").value;
      dialog.close();
      await this.#change(() => this.requests.changeUser(name, { password }));
    };
    dialog.showModal();
  }

  /** Runs a request that returns the users, and shows them; returns whether it succeeded. */
  async #change(act) {
    setText(byId("link"), "");
    const users = await attempt(this.key, act);
    if (users) this.#present(users);
    return Boolean(users);
  }

  #showPassword() {
    const { password, screen } = this.form.elements;
    password.disabled = screen.checked;
    password.required = !screen.checked;
    password.parentElement.hidden = screen.checked;
  }
}

function roleOptions() {
  return ROLES.map((role) => new Option(role, role));
}

function button(text, act) {
  const made = createElement("button", "", text);
  made.type = "button";
  made.addEventListener("click", act);
  return made;
}
