// Texts about trainings.

import { formatDecimals, translate } from "../shared/language.js";

const STATES = {
  queued: translate("waits for a worker"),
  leased: translate("a worker fetches the photographs"),
  running: translate("runs"),
  done: translate("done"),
  failed: translate("failed"),
  cancelled: translate("cancelled"),
};
const REQUESTS = {
  cancel: translate("is being cancelled"),
  stop: translate("is being ended with the best weights so far"),
};
const RATINGS = {
  useless: translate("useless"),
  "not measurable": translate("not measurable"),
  weak: translate("weak"),
  usable: translate("usable"),
};
const ENDED = ["done", "failed", "cancelled"];

/** The state of a training, with the workers. */
export function stateText({ state, request, worker, is_silent: isSilent, machines, waiting, members }) {
  if (isSilent) return translate("The worker {worker} does not answer. Another one continues from the last checkpoint.", { worker });
  if (state === "queued" && machines > 1) return translate("waits for {missing} of {machines} workers", { missing: machines - waiting, machines });
  if (members.length > 1) return translate("{state} · workers {workers}", { state: REQUESTS[request] ?? STATES[state], workers: members.map((member) => member.worker).join(", ") });
  const text = ENDED.includes(state) ? STATES[state] : (REQUESTS[request] ?? STATES[state]);
  return worker ? translate("{state} · worker {worker}", { state: text, worker }) : text;
}

export function isEnded({ state }) {
  return ENDED.includes(state);
}

/** The rating of a model, as the report words it. */
export function ratingText(level) {
  return RATINGS[level] ?? level;
}

/** A duration in minutes and seconds. */
export function durationText(seconds) {
  const minutes = Math.floor(seconds / 60);
  if (minutes >= 100) return translate("{hours} h", { hours: formatDecimals(minutes / 60, 1) });
  return translate("{minutes} min {seconds} s", { minutes, seconds: Math.floor(seconds % 60) });
}

/** Completed share of a running training, of its time or of all its steps; null if it is unknown. */
export function completedShare({ state, progress, settings }) {
  if (state !== "running" || !progress?.elapsed_s) return null;
  if (settings.all_steps) return progress.of_steps ? Math.min(progress.steps / progress.of_steps, 1) : null;
  return Math.min(progress.elapsed_s / (60 * settings.minutes), 1);
}
