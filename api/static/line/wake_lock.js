// Keeps the screen on; browsers allow it over https and on localhost.

/** Requests the wake lock now and whenever the page becomes visible. */
export function keepScreenOn() {
  const ask = () => {
    if (document.visibilityState === "visible") navigator.wakeLock?.request("screen").catch(() => {});
  };
  document.addEventListener("visibilitychange", ask);
  ask();
}
