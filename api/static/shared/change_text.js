// Changes in the audit log as sentences.

import { limitsText, verdictText } from "./record_text.js";

const SENTENCES = {
  review: (name, { after }) => `${name} reviewed it as ${verdictText(after.reviewed_label)}.${details(after)}`,
  undo: (name, { after }) => `${name} withdrew the review${after?.reviewed_label ? `; it is ${verdictText(after.reviewed_label)} again` : ""}.`,
  "delete a picture": (name) => `${name} deleted the photograph.`,
  "lose a picture": () => "The file of a photograph is missing.",
  "delete pictures": (_, { after }) => `The retention rules deleted ${count(after.count, "photograph")} (${after.cause}).`,
  promote: (name, change) => `${name} promoted a model: ${labelsText(change)}.`,
  "roll back": (name, change) => `${name} rolled a model back: ${labelsText(change)}.`,
  candidate: (name, change) => `${name} changed the candidate: ${labelsText(change)}.`,
  thresholds: (name, change) => `${name} ${thresholdsText(change)}`,
  "retry an event": (name, { before }) => `${name} retried an event for ${before.sink}.`,
  "retry events": (name, { after }) => `${name} retried ${count(after.count, "event")} for ${after.sink}.`,
  "discard an event": (name, { before }) => `${name} discarded an event for ${before.sink}.`,
  "drop events": (_, { after }) => `The outbox of ${after.sink} was full: ${count(after.count, "event")} dropped.`,
  "log in": (name) => `${name} logged in.`,
  "lock the log-in": (name, { after }) => `The log-in of ${name} was locked after ${count(after.failures, "failure")}.`,
  "add a user": (name, { after }) => `${name} added the user ${after.name} with the role ${after.role}.`,
  "change a user's role": (name, { before, after }) => `${name} changed the role of ${after.name} from ${before.role} to ${after.role}.`,
  "set a user's password": (name, { after }) => `${name} set the password of ${after.name}.`,
  "remove a user": (name, { before }) => `${name} removed the user ${before.name} (${before.role}).`,
  "change a setting": (name, { before, after }) => `${name} changed the setting ${after.name} from ${valueText(before.value)} to ${valueText(after.value)}.`,
  "make a log-in link": (name, { after }) => `${name} made a link with which ${after.name} logs in.`,
};

/** The sentence of a change. */
export function changeText(change) {
  const name = change.who || "An unknown person";
  return SENTENCES[change.what]?.(name, change) ?? `${name}: ${change.what}.`;
}

function details({ review_reason: reason, reviewed_mask: corrected }) {
  return `${corrected ? " The mask was corrected." : ""}${reason ? ` Reason: ${reason}` : ""}`;
}

function valueText(value) {
  return value === null ? "no limit" : String(value);
}

function labelsText({ before, after }) {
  const text = (labels) => Object.entries(labels).map(([label, version]) => `${label} ${version}`).join(", ");
  return `${after.model}, ${text(before.labels)} → ${text(after.labels)}`;
}

function thresholdsText({ before, after }) {
  const what = after.of_model ? "restored the thresholds of the model" : "changed the thresholds";
  return `${what}: ${after.model} ${after.version}, ${limitsText(before)} → ${limitsText(after)}.`;
}

function count(number, noun) {
  return `${number} ${noun}${number === 1 ? "" : "s"}`;
}
