// This page's requests to the service.

import { request } from "../shared/service.js";

export class SettingRequests {
  constructor(credentials) {
    this.credentials = credentials;
  }

  async settings() {
    return (await this.#json("v1/settings")).settings;
  }

  /** Changes a setting for all replicas; returns all settings. */
  async change(name, value) {
    return (await this.#json(`v1/settings/${name}`, "PUT", { value })).settings;
  }

  /** Returns to the value of the start; returns all settings. */
  async reset(name) {
    return (await this.#json(`v1/settings/${name}`, "DELETE")).settings;
  }

  /** All users and roles: {users, roles}. */
  async users() {
    const users = [];
    for (let after = ""; ; ) {
      const page = await this.#json(`v1/users?${new URLSearchParams({ after })}`);
      users.push(...page.users);
      if (page.next_after === null) return { ...page, users };
      after = page.next_after;
    }
  }

  /** Adds a user {name, role, password}; without a password, a screen. */
  addUser(user) {
    return this.#json("v1/users", "POST", user);
  }

  changeUser(name, change) {
    return this.#json(pathOf(name), "PUT", change);
  }

  removeUser(name) {
    return this.#json(pathOf(name), "DELETE");
  }

  /** A link with which a screen logs in: {path, expires_at}. */
  makeLink(name) {
    return this.#json(`${pathOf(name)}/link`, "POST");
  }

  async #json(path, method = "GET", body = undefined) {
    const sent = body && { body: JSON.stringify(body), headers: { "Content-Type": "application/json" } };
    return (await request(path, { method, ...sent, credentials: this.credentials })).json();
  }
}

function pathOf(name) {
  return `v1/users/${encodeURIComponent(name)}`;
}
