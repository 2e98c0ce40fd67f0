// Undoes changes of aliases, thresholds and confirmed photographs, by the same requests that make them.

import { changedRecords } from "../shared/change_text.js";

const MOVED = ["stable", "candidate", "previous"];

/**
 * The requests that undo a change of the audit log, in their order: functions of ModelRequests that return promises.
 * Null if the models are no longer as after the change, or if it changed nothing.
 */
export function undoSteps({ what, before, after }, models) {
  if (JSON.stringify(before) === JSON.stringify(after)) return null;
  if (what === "thresholds") return hasThresholds(after, models) ? [setThresholds(before)] : null;
  if (what === "confirm") return hasConfirmed(after, models) ? [withdraw(after)] : null;
  if (what === "withdraw") return hasConfirmed(after, models) && isStable(after, models) ? [confirmAgain({ before, after })] : null;
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
    const name = JSON.stringify([model, ...(version === undefined ? [] : [version, change.what === "thresholds"])]);
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
  return { model: name, version, ...find(models, name, version)?.thresholds };
}

/** The confirmed photographs of a version, as in the audit log. */
export function confirmedState(name, version, models) {
  const confirmed = find(models, name, version)?.confirmed;
  const records = confirmed?.entries.flatMap((entry) => entry.records) ?? [];
  return { model: name, version, revision: confirmed?.revision ?? 0, records };
}

function find(models, name, version) {
  return models.find((model) => model.name === name && model.version === version);
}

function isStable({ model, version }, models) {
  return find(models, model, version)?.aliases.includes("stable");
}

function hasConfirmed({ model, version, revision }, models) {
  return confirmedState(model, version, models).revision === revision;
}

/** The revision is the number of the confirmation that made it. */
function withdraw({ model, version, revision }) {
  return (requests) => requests.withdraw(model, version, revision);
}

function confirmAgain(change) {
  return (requests) => requests.confirmUsual(change.after.model, changedRecords(change));
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
