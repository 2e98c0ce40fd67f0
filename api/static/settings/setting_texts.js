// Names and explanations of the settings, in groups.

/** Groups of settings; `kind` is how a value is entered. */
export const GROUPS = [
  {
    title: "Shifts and days",
    settings: {
      record_shifts: { title: "Start of shifts", kind: "text", hint: "Times of the day, for example 06:00,14:00,22:00." },
      record_zone: { title: "Time zone of the plant", kind: "zone", hint: "For shifts, days and reports." },
    },
  },
  {
    title: "Parts that are queued for review",
    settings: {
      record_defect_share: { title: "Share of the defects", kind: "number", hint: "0 to 1; also of the photographs that the model is unsure of." },
      record_good_share: { title: "Share of the good parts", kind: "number", hint: "0 to 1, by chance: estimates how many defects are missed." },
      record_near: { title: "Good parts near the threshold", kind: "number", hint: "Fraction of the threshold, 0 to 1: good parts above it are all queued. 1: none." },
    },
  },
  {
    title: "How long photographs are kept",
    settings: {
      record_good_days: { title: "Good parts", kind: "number", unit: "days", hint: "Empty: without limit." },
      record_sample_share: { title: "Sample of the good parts", kind: "number", hint: "Share, 0 to 1, that is kept longer." },
      record_sample_days: { title: "That sample, and parts queued for review", kind: "number", unit: "days", hint: "Empty: without limit." },
      record_defect_days: { title: "Defects", kind: "number", unit: "days", hint: "Empty: without limit." },
      record_reviewed_days: { title: "Reviewed parts", kind: "number", unit: "days", hint: "Empty: without limit." },
      record_budget_gb: { title: "Most photographs", kind: "number", unit: "GB", hint: "Above it, the least valuable are deleted first. Empty: without limit." },
      record_free_share: { title: "Free share of the disk", kind: "number", hint: "0 to 1; the least valuable photographs are deleted first." },
    },
  },
  {
    title: "Receivers of messages",
    settings: {
      outbox_webhook: { title: "Webhook" },
      outbox_mqtt: { title: "MQTT broker" },
      outbox_jsonl: { title: "File" },
      opcua_endpoint: { title: "OPC UA" },
      outbox_hours: { title: "Sending is tried again for", unit: "hours" },
      public_url: { title: "Address of these pages in messages" },
    },
  },
  {
    title: "Inspection",
    settings: {
      record: { title: "Recording" },
      unlike_training: { title: "Photographs unlike the training" },
      engine: { title: "Engine" },
      max_pixels: { title: "Most pixels of a photograph" },
      max_body_bytes: { title: "Largest request", unit: "bytes" },
      rate_limit: { title: "Requests per second of a client" },
      require_signature: { title: "Keys that sign models" },
    },
  },
];
