// Changes in the audit log as sentences.

import { translate, translateCount } from "./language.js";
import { limitsText, verdictText } from "./record_text.js";
import { roleText } from "./role_text.js";
import { receiverName, settingName, settingValue } from "./setting_texts.js";

const CAUSES = { age: translate("age"), space: translate("space") }; // of a deletion

const SENTENCES = {
  review: (name, { after }) =>
    translate("{name} reviewed it as {verdict}.", { name, verdict: verdictText(after.reviewed_label) }) + details(after),
  undo: (name, { after }) =>
    after?.reviewed_label
      ? translate("{name} withdrew the review; it is {verdict} again.", { name, verdict: verdictText(after.reviewed_label) })
      : translate("{name} withdrew the review.", { name }),
  "delete a picture": (name) => translate("{name} deleted the photograph.", { name }),
  "lose a picture": () => translate("The file of a photograph is missing."),
  "delete pictures": (_, { after: { count, cause } }) =>
    translateCount(
      count,
      "The retention rules deleted {count} photograph ({cause}).",
      "The retention rules deleted {count} photographs ({cause}).",
      { cause: CAUSES[cause] ?? cause },
    ),
  promote: (name, change) => translate("{name} promoted a model: {aliases}.", { name, aliases: aliasesText(change) }),
  "roll back": (name, change) => translate("{name} rolled a model back: {aliases}.", { name, aliases: aliasesText(change) }),
  candidate: (name, change) => translate("{name} changed the candidate: {aliases}.", { name, aliases: aliasesText(change) }),
  thresholds: thresholdsText,
  confirm: (name, change) =>
    translateCount(
      changedRecords(change).length,
      "{name} confirmed {count} photograph as usual: {model} {version}.",
      "{name} confirmed {count} photographs as usual: {model} {version}.",
      { name, ...namedModel(change) },
    ),
  withdraw: (name, change) =>
    translateCount(
      changedRecords(change).length,
      "{name} withdrew the confirmation of {count} photograph: {model} {version}.",
      "{name} withdrew the confirmation of {count} photographs: {model} {version}.",
      { name, ...namedModel(change) },
    ),
  "retry an event": (name, { before }) => translate("{name} retried an event for {receiver}.", { name, receiver: receiverName(before.sink) }),
  "retry events": (name, { after }) =>
    translateCount(
      after.count,
      "{name} retried {count} event for {receiver}.",
      "{name} retried {count} events for {receiver}.",
      { name, receiver: receiverName(after.sink) },
    ),
  "discard an event": (name, { before }) =>
    translate("{name} discarded an event for {receiver}.", { name, receiver: receiverName(before.sink) }),
  "drop events": (_, { after }) =>
    translateCount(
      after.count,
      "The outbox of {receiver} was full: {count} event dropped.",
      "The outbox of {receiver} was full: {count} events dropped.",
      { receiver: receiverName(after.sink) },
    ),
  "store a plan": (name, { after }) =>
    translate("{name} stored the inspection plan {plan}, version {version}, for {model}: {reason}", {
      name,
      plan: after.name,
      version: after.plan,
      model: after.model,
      reason: after.reason,
    }),
  "activate a plan": planChangeText,
  "log in": (name) => translate("{name} logged in.", { name }),
  "lock the log-in": (_, { after }) =>
    translateCount(
      after.failures,
      "The log-in of {name} was locked after {count} failure.",
      "The log-in of {name} was locked after {count} failures.",
      { name: after.name },
    ),
  "add a user": (name, { after }) =>
    translate("{name} added the user {user} with the role {role}.", { name, user: after.name, role: roleText(after.role) }),
  "change a user's role": (name, { before, after }) =>
    translate("{name} changed the role of {user} from {old} to {role}.", {
      name,
      user: after.name,
      old: roleText(before.role),
      role: roleText(after.role),
    }),
  "set a user's password": (name, { after }) => translate("{name} set the password of {user}.", { name, user: after.name }),
  "remove a user": (name, { before }) =>
    translate("{name} removed the user {user} ({role}).", { name, user: before.name, role: roleText(before.role) }),
  "change a setting": (name, { before, after }) =>
    translate("{name} changed the setting {setting} from {old} to {value}.", {
      name,
      setting: settingName(after.name),
      old: settingValue(after.name, before.value),
      value: settingValue(after.name, after.value),
    }),
  "create a data set": (name, { after }) =>
    translate("{name} created the data set {data_set}.", { name, data_set: after.name }),
  "change a data set": (name, { before, after }) =>
    translate("{name} changed the data set {old}. It is called {data_set} and has the classes {classes}.", {
      name,
      old: before.name,
      data_set: after.name,
      classes: after.classes.join(", "),
    }),
  "import photographs": (name, { after }) =>
    translate("{name} sent the archive {archive} for the data set {data_set}.", {
      name,
      archive: after.name,
      data_set: after.data_set,
    }),
  "remove a photograph": (name, { before }) =>
    translate("{name} removed the photograph {photograph} from the data set {data_set}.", {
      name,
      photograph: before.name,
      data_set: before.data_set,
    }),
  "restore a photograph": (name, { after }) =>
    translate("{name} added the removed photograph {photograph} to the data set {data_set} again.", {
      name,
      photograph: after.name,
      data_set: after.data_set,
    }),
  "add inspected photographs": (name, { after }) =>
    translateCount(
      after.count,
      "{name} added {count} inspected photograph to the data set {data_set}.",
      "{name} added {count} inspected photographs to the data set {data_set}.",
      { name, data_set: after.data_set },
    ),
  "propose labels": (name, { after }) =>
    translate("{name} let {model} {version} propose labels for the data set {data_set}.", { name, ...after }),
  "make a version of a data set": (name, { after }) =>
    translate("{name} made version {version} of the data set {data_set}.", {
      name,
      version: after.version,
      data_set: after.data_set,
    }),
  "order a training": (name, { after }) =>
    translate("{name} ordered the training {job}: {model} {version}.", { name, ...after }),
  "cancel a training": (name, { after }) => translate("{name} cancelled the training {job}.", { name, ...after }),
  "stop a training": (name, { after }) =>
    translate("{name} ended the training {job} early, with the best model so far.", { name, ...after }),
  "continue a training": (name, { after }) =>
    translate("{name} continued the failed training {job}.", { name, ...after }),
  "delete a data set": (name, { before }) =>
    translateCount(
      before.photographs,
      "{name} deleted the data set {data_set} with {count} photograph.",
      "{name} deleted the data set {data_set} with {count} photographs.",
      { name, data_set: before.name },
    ),
  "delete a training": (name, { before }) =>
    translate("{name} deleted the training {job}: {model} {version}.", { name, ...before }),
  "use a trained model": (name, { after }) =>
    translate("{name} put the model of the training {job} into use: {model} {version}, as {alias}.", {
      name,
      ...after,
    }),
  "make a log-in link": (name, { after }) =>
    translate("{name} made a link with which {user} logs in.", { name, user: after.name }),
};

/** The sentence of a change. */
export function changeText(change) {
  const name = change.who || translate("An unknown person");
  return SENTENCES[change.what]?.(name, change) ?? `${name}: ${change.what}.`;
}

/** The records that a change of confirmed photographs added or removed. */
export function changedRecords({ before, after }) {
  const [fewer, more] = before.records.length < after.records.length ? [before, after] : [after, before];
  return more.records.filter((id) => !fewer.records.includes(id));
}

function planChangeText(name, { after: { model, station, plan, reason } }) {
  const values = { name, model, reason, version: plan?.version ?? "", station: station || translate("all stations without a plan of their own") };
  if (!plan) return translate("{name} deactivated the inspection plan of {model} at {station}: {reason}", values);
  return translate("{name} activated version {version} of the inspection plan of {model} at {station}: {reason}", values);
}

function namedModel({ after: { model, version } }) {
  return { model, version };
}

function details({ review_reason: reason, reviewed_mask: corrected }) {
  const sentences = [
    corrected ? translate("The mask was corrected.") : "",
    reason ? translate("Reason: {reason}", { reason }) : "",
  ];
  return sentences.filter(Boolean).map((sentence) => ` ${sentence}`).join("");
}

function aliasesText({ before, after }) {
  const text = (aliases) => Object.entries(aliases).map(([alias, version]) => `${alias} ${version}`).join(", ");
  return `${after.model}, ${text(before.aliases)} → ${text(after.aliases)}`;
}

function thresholdsText(name, { before, after }) {
  const { model, version, of_model: isOwn } = after;
  const values = { name, model, version, before: limitsText(before), after: limitsText(after) };
  return isOwn
    ? translate("{name} restored the thresholds of the model: {model} {version}, {before} → {after}.", values)
    : translate("{name} changed the thresholds: {model} {version}, {before} → {after}.", values);
}
