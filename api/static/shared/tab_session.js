// The session of a tab on one page, whose id owns the leases of the tab.

import { randomId } from "./random_id.js";

/**
 * The session {id, …} of this tab under a name, with what the page has added to it; it survives a reload.
 *
 * It is stored only while no page uses it: browsers copy the storage when they duplicate a tab, and two tabs with one
 * session would show the same picture.
 */
export function openTabSession(name) {
  const session = { id: randomId(), ...take(name) };
  window.addEventListener("pagehide", () => sessionStorage.setItem(name, JSON.stringify(session)));
  window.addEventListener("pageshow", (event) => event.persisted && take(name));
  return session;
}

function take(name) {
  const saved = sessionStorage.getItem(name);
  sessionStorage.removeItem(name);
  return saved ? JSON.parse(saved) : {};
}
