// Random ids of tabs.

/** 128 random bits; `crypto.randomUUID` needs HTTPS. */
export function randomId() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}
