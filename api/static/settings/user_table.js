// The users: adding, changing and removing them.

import { attempt } from "../shared/attempt.js";
import { byId, createElement, setText } from "../shared/dom.js";
import { translate } from "../shared/language.js";
import { timeText } from "../shared/plant_time.js";
import { roleText } from "../shared/role_text.js";

export class UserTable {
  constructor(requests, credentials) {
    Object.assign(this, { requests, credentials, form: byId("new-user") });
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
    await this.#change(() => {});
  }

  #present({ users, roles }) {
    const choice = this.form.elements.role;
    if (!choice.length) choice.append(...roleOptions(roles));
    byId("users").hidden = false;
    byId("user-rows").replaceChildren(...users.map((user) => this.#row(user, roles)));
  }

  #row(user, roles) {
    const { name, is_screen: isScreen, created_at: added } = user;
    const role = createElement("select", "", ...roleOptions(roles));
    role.value = user.role;
    role.setAttribute("aria-label", translate("Role of {name}", { name }));
    role.addEventListener("change", () => this.#change(() => this.requests.changeUser(name, { role: role.value })));
    const secret = isScreen ? button(translate("Make a link"), () => this.#makeLink(name)) : button(translate("Set password"), () => this.#askPassword(name));
    const remove = button(translate("Remove"), () => this.#remove(name));
    const cells = [isScreen ? translate("{name} (screen)", { name }) : name, role, timeText(added), createElement("div", "buttons", secret, remove)];
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
    if (!confirm(translate("Remove {name}? All sessions of this user end at once.", { name }))) return;
    await this.#change(() => this.requests.removeUser(name));
  }

  async #makeLink(name) {
    const link = await attempt(this.credentials, () => this.requests.makeLink(name));
    if (!link) return;
    const address = new URL(link.path, document.baseURI).href;
    const values = { name, time: timeText(link.expires_at), address };
    setText(byId("link"), translate("Open this address on the screen '{name}', once, before {time}: {address}", values));
  }

  #askPassword(name) {
    const dialog = byId("password-dialog");
    byId("password-title").textContent = translate("Password of {name}", { name });
    byId("user-password").value = "";
    dialog.querySelector("form").onsubmit = async (event) => {
      event.preventDefault();
      const password = byId("user-password").value;
      dialog.close();
      await this.#change(() => this.requests.changeUser(name, { password }));
    };
    dialog.showModal();
  }

  /** Runs a request that changes users, and shows all of them; returns whether it succeeded. */
  async #change(act) {
    setText(byId("link"), "");
    const answer = await attempt(this.credentials, async () => {
      await act();
      return this.requests.users();
    });
    if (answer) this.#present(answer);
    return Boolean(answer);
  }

  #showPassword() {
    const { password, screen } = this.form.elements;
    password.disabled = screen.checked;
    password.required = !screen.checked;
    password.parentElement.hidden = screen.checked;
  }
}

function roleOptions(roles) {
  return roles.map((role) => new Option(roleText(role), role));
}

function button(text, act) {
  const made = createElement("button", "", text);
  made.type = "button";
  made.addEventListener("click", act);
  return made;
}
