// The dialog that asks for name and password of a user, or for an API key.

import { byId } from "./dom.js";
import { translate, translateTree } from "./language.js";
import { currentSession, logIn, reasonForLogIn } from "./session.js";

const DIALOG = `
  <form method="dialog">
    <h2 id="log-in-title"></h2>
    <p id="log-in-reason"></p>
    <div id="user-fields" class="fields">
      <label>Name<input id="user-name" autocomplete="username" autocapitalize="none" required></label>
      <label>Password<input id="password" type="password" autocomplete="current-password" required></label>
    </div>
    <div id="key-fields" class="fields">
      <label>Key<input id="key" type="password" autocomplete="off" required></label>
      <p class="hint">Stored until this tab is closed.</p>
    </div>
    <p id="log-in-problem" role="alert"></p>
    <div class="buttons">
      <a id="open-id" class="button" href="v1/session/openid">Company account</a>
      <button id="log-in-other" type="button"></button>
      <button id="log-in-cancel" type="button">Cancel</button>
      <button id="log-in-submit" type="submit" class="primary"></button>
    </div>
  </form>`;

/**
 * Shows the dialog with `reason`; resolves to {key}, to {user} after a log-in, or to null if declined.
 *
 * Without users, it asks for a key.
 */
export async function askForCredentials(reason) {
  const { has_users: hasUsers, open_id: hasOpenId } = await currentSession();
  const dialog = byId("log-in-dialog") ?? makeDialog();
  let asksUser = hasUsers;
  const present = () => {
    byId("user-fields").hidden = !asksUser;
    byId("key-fields").hidden = asksUser;
    for (const input of dialog.querySelectorAll("input")) input.disabled = input.closest("[hidden]") !== null;
    byId("log-in-title").textContent = asksUser ? translate("Log in") : translate("API key");
    byId("log-in-submit").textContent = asksUser ? translate("Log in") : translate("Use key");
    byId("log-in-other").textContent = asksUser ? translate("Use an API key") : translate("Log in with a name");
    byId("log-in-problem").textContent = "";
  };
  byId("log-in-reason").textContent = reason || reasonForLogIn() || (hasUsers ? "" : translate("The service requires an API key."));
  byId("log-in-other").hidden = !hasUsers;
  byId("open-id").hidden = !hasOpenId;
  byId("open-id").search = new URLSearchParams({ page: pageName() });
  dialog.querySelector("form").reset();
  present();
  dialog.showModal();
  byId("log-in-other").onclick = () => {
    asksUser = !asksUser;
    present();
  };
  return new Promise((resolve) => {
    let given = null;
    dialog.onclose = () => resolve(given);
    byId("log-in-cancel").onclick = () => dialog.close();
    dialog.querySelector("form").onsubmit = async (event) => {
      event.preventDefault();
      given = asksUser ? await logInUser() : { key: byId("key").value.trim() };
      if (given) dialog.close();
    };
  });
}

/** This page below the address of the pages, with its query: line, parts/7, train?job=3. */
function pageName() {
  return location.pathname.slice(new URL(document.baseURI).pathname.replace(/[^/]*$/, "").length) + location.search;
}

async function logInUser() {
  byId("log-in-problem").textContent = "";
  byId("log-in-submit").disabled = true;
  try {
    await logIn(byId("user-name").value, byId("password").value);
    return { user: byId("user-name").value };
  } catch (error) {
    byId("log-in-problem").textContent = error.message;
    return null;
  } finally {
    byId("log-in-submit").disabled = false;
  }
}

function makeDialog() {
  const dialog = document.createElement("dialog");
  dialog.id = "log-in-dialog";
  dialog.setAttribute("aria-labelledby", "log-in-title");
  dialog.innerHTML = DIALOG;
  translateTree(dialog);
  document.body.append(dialog);
  return dialog;
}
