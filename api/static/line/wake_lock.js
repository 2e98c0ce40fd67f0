// Keeps the screen on, where the browser lets a page do so: over https, or on the machine itself.

/** Asks for it now, and whenever the page comes into sight again. */
export function keepScreenOn() {
  const ask = () => {
    if (document.visibilityState === "visible") navigator.wakeLock?.request("screen").catch(() => {});
  };
  document.addEventListener("visibilitychange", ask);
  ask();
}
