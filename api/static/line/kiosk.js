// Full screen, without the links to other pages: by a button, by `kiosk=on` in the address, and side by side.

import { byId } from "../shared/dom.js";

export function enableKiosk() {
  const always = new URLSearchParams(location.search).get("kiosk") === "on" || window !== window.top;
  const update = () => document.body.classList.toggle("kiosk", always || Boolean(document.fullscreenElement));
  byId("full-screen").hidden = !document.fullscreenEnabled; // on some phones
  byId("full-screen").addEventListener("click", () => document.documentElement.requestFullscreen());
  document.addEventListener("fullscreenchange", update);
  update();
}
