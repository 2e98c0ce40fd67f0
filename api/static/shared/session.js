// Who is logged in to the pages. The session is a cookie, which scripts cannot read.

import { byId } from "./dom.js";
import { LANGUAGE_HEADER, translate } from "./language.js";

const PATH = "v1/session";
const NOBODY = { user: null, csrf_token: null, has_users: false, local_roles: [], open_id: false };
const TIMEOUT_MS = 60_000; // requests that change something wait for the answer
const JSON_TYPE = { "Content-Type": "application/json" };
let asked = null;
let linkProblem = "";

/** {user: {name, role, roles} or null, csrf_token, has_users, local_roles, open_id}; asked once for each page. */
export function currentSession() {
  asked ??= byId("account") ? load() : Promise.resolve(NOBODY); // without a record there are no users
  return asked;
}

/** Whether a user has a role or one that includes it. */
export function hasRole(user, role) {
  return user.roles.includes(role);
}

/** Asks again; the service may send a new cookie. */
export function refreshSession() {
  asked = null;
  return currentSession();
}

/** The header that a request which changes something needs. */
export async function csrfHeader() {
  const { csrf_token: token } = await currentSession();
  return token ? { "X-CSRF-Token": token } : {};
}

export function logIn(name, password) {
  return change("POST", PATH, { name, password });
}

/** Logs a screen in with the token of its link; a failure is the reason that the log-in dialog gives. */
export async function logInByLink(token) {
  try {
    await change("POST", `${PATH}/link`, { token });
  } catch (error) {
    linkProblem = error.message;
  }
}

/** Why the log-in by a link failed; "" if it did not. */
export function reasonForLogIn() {
  return linkProblem;
}

/** Changes the password of the user who is logged in. */
export function changePassword(password, newPassword) {
  return change("PUT", `${PATH}/password`, { password, new_password: newPassword });
}

export function logOut() {
  return change("DELETE", PATH);
}

async function load() {
  const answer = await fetch(PATH, { cache: "no-store", signal: AbortSignal.timeout(TIMEOUT_MS) }).catch(() => null);
  if (answer?.ok) return answer.json();
  asked = null; // the next request asks again
  return NOBODY;
}

async function change(method, path, body) {
  const headers = { ...LANGUAGE_HEADER, ...(body && JSON_TYPE), ...(await csrfHeader()) };
  const answer = await fetch(path, { method, headers, body: body && JSON.stringify(body) }).catch(() => null);
  const state = (await answer?.json().catch(() => null)) ?? {};
  if (!answer?.ok) throw new Error(state.detail ?? translate("No response: the service is stopped or unreachable."));
  asked = Promise.resolve(state);
  document.dispatchEvent(new Event("session"));
}
