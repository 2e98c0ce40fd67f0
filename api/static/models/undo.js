// Undoes changes of aliases and thresholds, by the same requests that make them.

const MOVED = ["stable", "candidate", "previous"];

/**
 * The requests that undo a change of the audit log, in their order: functions of ModelRequests that return promises.
 * Null if the models are no longer as after the change, or if it changed nothing.
 */
export function undoSteps({ what, before, after }, models) {
  if (JSON.stringify(before) === JSON.stringify(after)) return null;
  if (what === "thresholds") return hasThresholds(after, models) ? [setThresholds(before)] : null;
  if (!hasAliases(after, models)) return null;
  const { model, aliases } = before;
  const candidate = (version) => (requests) => requests.setCandidate(model, version ?? null);
  if (what === "candidate") return [candidate(aliases.candidate)];
  if (what === "promote") return [(requests) => requests.rollBack(model), candidate(aliases.candidate)];
  if (what !== "roll back") return null;
  const again = [candidate(aliases.stable), (requests) => requests.promote(model)];
  return aliases.candidate === undefined ? again : [...again, candidate(aliases.candidate)];
}

/** The newest change of each kind, by its name: only that can be undone. `changes` are the newest first. */
export function newestOfEach(changes) {
  const newest = new Map();
  for (const change of changes) {
    const { model, version } = change.after;
    const name = JSON.stringify(change.what === "thresholds" ? [model, version] : [model]);
    if (!newest.has(name)) newest.set(name, change);
  }
  return new Set(newest.values());
}

/** The state of a model that a change of its aliases can move, as in the audit log. */
export function aliasState(name, models) {
  const own = models.filter((model) => model.name === name);
  return { model: name, aliases: Object.fromEntries(own.flatMap(({ version, aliases }) => aliases.map((alias) => [alias, version]))) };
}

/** The thresholds of a version, as in the audit log. */
export function thresholdState(name, version, models) {
  const found = models.find((model) => model.name === name && model.version === version);
  return { model: name, version, ...found?.thresholds };
}

function hasAliases({ model, aliases }, models) {
  const now = aliasState(model, models).aliases;
  return MOVED.every((alias) => now[alias] === aliases[alias]);
}

function hasThresholds(after, models) {
  const now = thresholdState(after.model, after.version, models);
  return ["score", "review", "of_model"].every((name) => now[name] === after[name]);
}

function setThresholds({ model, version, score, review, of_model: ofModel }) {
  const limits = ofModel ? { score: null, review: null } : { score, review };
  return (requests) => requests.setThresholds(model, version, limits);
}
