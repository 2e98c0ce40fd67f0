// Names and explanations of the settings, in groups.

import { formatNumber, translate } from "./language.js";

/** Groups of settings; `kind` is how a value is entered. */
export const GROUPS = [
  {
    title: translate("Shifts and days"),
    settings: {
      record_shifts: { title: translate("Start of shifts"), kind: "text", hint: translate("Times of the day, for example 06:00,14:00,22:00.") },
      record_zone: { title: translate("Time zone of the plant"), kind: "zone", hint: translate("For shifts, days and reports.") },
    },
  },
  {
    title: translate("Parts that are queued for review"),
    settings: {
      record_defect_share: { title: translate("Share of the defects"), kind: "number", hint: translate("0 to 1; also of the photographs that the model is unsure of.") },
      record_good_share: { title: translate("Share of the good parts"), kind: "number", hint: translate("0 to 1, by chance: estimates how many defects are missed.") },
      record_near: { title: translate("Good parts near the threshold"), kind: "number", hint: translate("Fraction of the threshold, 0 to 1: good parts above it are all queued. 1: none.") },
    },
  },
  {
    title: translate("How long photographs are kept"),
    settings: {
      record_good_days: { title: translate("Good parts"), kind: "number", unit: translate("days"), hint: translate("Empty: without limit.") },
      record_sample_share: { title: translate("Sample of the good parts"), kind: "number", hint: translate("Share, 0 to 1, that is kept longer.") },
      record_sample_days: { title: translate("That sample, and parts queued for review"), kind: "number", unit: translate("days"), hint: translate("Empty: without limit.") },
      record_defect_days: { title: translate("Defects"), kind: "number", unit: translate("days"), hint: translate("Empty: without limit.") },
      record_reviewed_days: { title: translate("Reviewed parts"), kind: "number", unit: translate("days"), hint: translate("Empty: without limit.") },
      record_budget_gb: { title: translate("Most photographs"), kind: "number", unit: translate("GB"), hint: translate("Above it, the least valuable are deleted first. Empty: without limit.") },
      record_free_share: { title: translate("Free share of the disk"), kind: "number", hint: translate("0 to 1; the least valuable photographs are deleted first.") },
    },
  },
  {
    title: translate("Receivers of messages"),
    settings: {
      outbox_webhook: { title: translate("Webhook") },
      outbox_mqtt: { title: translate("MQTT broker") },
      outbox_jsonl: { title: translate("File") },
      opcua_endpoint: { title: translate("OPC UA") },
      outbox_hours: { title: translate("Sending is tried again for"), unit: translate("hours") },
      public_url: { title: translate("Address of these pages in messages") },
    },
  },
  {
    title: translate("Inspection"),
    settings: {
      record: { title: translate("Recording"), values: { required: translate("required"), "best-effort": translate("as far as possible"), off: translate("off") } },
      unlike_training: { title: translate("Photographs very unlike the training"), values: { reject: translate("not inspected"), warn: translate("inspected with a warning") } },
      engine: { title: translate("Engine") },
      max_pixels: { title: translate("Most pixels of a photograph") },
      max_body_bytes: { title: translate("Largest request"), unit: translate("bytes") },
      rate_limit: { title: translate("Requests per second of a client") },
      require_signature: { title: translate("Keys that sign models") },
    },
  },
];

const TEXTS = Object.fromEntries(GROUPS.flatMap(({ title: group, settings }) => Object.entries(settings).map(([name, text]) => [name, { ...text, group }])));

/** The name of a setting with its group; the internal one of a setting of another version. */
export function settingName(name) {
  const text = TEXTS[name];
  return text ? translate("“{group}: {setting}”", { group: text.group, setting: text.title }) : name;
}

/** The value of the setting `name`. */
export function settingValue(name, value) {
  return value === null ? translate("no limit") : valueText(value, TEXTS[name] ?? {});
}

/** The name of a receiver of messages by that of its sink. */
export function receiverName(sink) {
  return TEXTS[`outbox_${sink}`]?.title ?? sink;
}

/** A value with its unit; null is a dash. */
export function valueText(value, { unit, values }) {
  if (value === null) return "–";
  const shown = typeof value === "number" ? formatNumber(value, { maximumFractionDigits: 20 }) : (values?.[value] ?? String(value));
  return unit ? `${shown} ${unit}` : shown;
}
