// Errors of the service that people meet often, in the language of the page. The service explains them in English.

import { DETAILED_JOB_TEXTS, JOB_TEXTS } from "./job_problem_texts.js";
import { formatNumber, LANGUAGE, translate } from "./language.js";
import { photographText } from "./photograph_sentences.js";

const WAIT = "Retry-After";
const LABELS = ["label", "other_label"]; // values that are labels of photographs

const TEXTS = {
  ...JOB_TEXTS,
  log_in_failed: () => translate("The name or the password is wrong."),
  log_in_locked: (values) => translate("Too many failed attempts for this name. Try again in {seconds} s.", values),
  link_not_valid: () => translate("This link was used or has expired. Ask an administrator for a new one."),
  not_logged_in: () => translate("Log in first."),
  missing_key: () => translate("Log in, or enter an API key."),
  unknown_key: () => translate("The service does not accept this key. Check it, or ask the operator of the service."),
  not_predict: () => translate("The API key does not allow this."),
  not_review: () => translate("The API key does not allow this."),
  not_admin: () => translate("The API key does not allow this."),
  not_train: () => translate("The API key does not allow this."),
  predict_off: () => translate("Nobody may do this here before there are users or API keys. Ask an administrator."),
  admin_off: () => translate("Nobody may do this here before there are users or API keys. Ask an administrator."),
  train_off: () => translate("Nobody may do this here before there are users or API keys. Ask an administrator."),
  role_too_low: () => translate("Your role does not allow this. Ask an administrator."),
  weak_password: () => translate("Expected a password of 10 to 200 characters that is not the name."),
  user_exists: () => translate("There is a user of this name already."),
  no_administrator: () => translate("At least one user must be an administrator."),
  review_off: () => translate("Nobody may read the record here before there are users. Ask an administrator."),
  record_unavailable: () => translate("The record cannot be used now. Try again later."),
  corrupt_image: () => translate("The photograph is damaged. Take it or copy it again."),
  empty_image: () => translate("The file of the photograph is empty. Send it again."),
  truncated_image: () => translate("The photograph is incomplete. Take it or copy it again."),
  unreadable_file: () => translate("The file cannot be read."),
  empty_archive: () => translate("The ZIP file is empty."),
  upload_timeout: () => translate("The file arrived too slowly. Send it again."),
  jobs_full: () => translate("Too many tasks wait in the background. Try again later."),
  queue_full: () => translate("Too many photographs wait for their inspection. Try again later."),
  exports_full: () => translate("Too many exports are running. Try again later."),
  log_ins_full: () => translate("Too many people are logging in at present. Try again later."),
  uploads_full: () => translate("The service receives too many photographs at present. Try again later."),
  rate_limit: () => translate("Too many requests. Try again later."),
  deadline_passed: () => translate("The service did not answer in time. Try again later."),
  internal_error: () => translate("The service has a problem. Its log has the cause."),
  stalled: () => translate("The service does not work any more and must be restarted. Tell its operator."),
  not_ready: () => translate("The service has no model ready. Try again later."),
  draining: () => translate("The service is stopping. Try again later."),
  name_taken: () => translate("There is a data set of this name already."),
  name_differs: () => translate("The name differs from that of the data set."),
  data_set_not_found: () => translate("The data set does not exist."),
  photograph_not_found: () => translate("The data set does not have this photograph."),
  photograph_removed: () => translate("Somebody has removed the photograph."),
  import_not_found: () => translate("The import does not exist."),
  version_not_found: () => translate("The version does not exist."),
  model_not_found: () => translate("The model does not exist."),
  record_not_found: () => translate("The record does not have this part."),
  job_not_found: () => translate("The training does not exist."),
  user_not_found: () => translate("The user does not exist."),
  lot_not_found: () => translate("The lot does not exist."),
  picture_lost: () => translate("The file is lost. Restore it from a backup."),
  picture_expiring: () => translate("The photograph was deleted."),
  picture_expired: () => translate("The photograph was deleted."),
  file_lost: () => translate("The file is lost. Restore it from a backup."),
  annotation_changed: () => translate("Somebody has labelled the photograph meanwhile. Load it again."),
  changed_meanwhile: () => translate("Somebody has changed this meanwhile. Load it again."),
  leased: () => translate("Somebody else has this open."),
  nothing_labelled: () => translate("No photograph of the data set has a label. Label photographs first."),
  nothing_unlabelled: () => translate("All photographs of the data set have a label."),
  no_classes: () => translate("The data set has no classes of defects."),
  job_running: () => translate("This already runs for the data set. Wait for the result."),
  training_running: () => translate("A training for proposals runs already. Wait for it, or cancel it."),
  job_ended: () => translate("The training has ended already."),
  no_predictions: () => translate("The training is not done."),
  job_not_done: () => translate("The training is not done."),
  job_not_ended: () => translate("The training has not ended."),
  job_not_failed: () => translate("The training has not failed."),
  job_not_started: () => translate("The training has not started."),
  model_served: () => translate("A model of the training is in use."),
  nothing_in_common: () => translate("The trainings have no test photographs in common."),
  model_changed: () => translate("The model has changed meanwhile. Load the page again."),
  model_replaced: () => translate("The model has been replaced meanwhile. Try again."),
  reload_running: () => translate("Models are being loaded. Try again later."),
  no_previous: () => translate("There is no former version to go back to."),
  already_stable: () => translate("This version is the stable one already."),
  screen_has_no_password: () => translate("A screen has no password."),
  not_a_screen: () => translate("This user is not a screen."),
  no_role: () => translate("You have no role here. Ask an administrator."),
  provider_unavailable: () => translate("The log-in provider cannot be reached. Try again later."),
  csrf: () => translate("The page is out of date. Load it again."),
  not_reviewed: () => translate("The part has no review."),
  no_mask: () => translate("The photograph has no mask."),
};

// Before the English detail, which has the values.
const DETAILED_TEXTS = {
  ...DETAILED_JOB_TEXTS,
  too_many_pixels: () => translate("The photograph has too many pixels."),
  too_many_pixels_for_memory: () => translate("The photograph needs more memory than the service has."),
  unsupported_type: () => translate("The file has a format that the service does not read."),
  unsupported_depth: () => translate("The service does not read photographs of this bit depth."),
  unsupported_channels: () => translate("The service does not read photographs with these colour channels."),
  corrupt_mask: () => translate("The mask is damaged."),
  bad_mask: () => translate("The mask is not valid."),
  unsupported_content_type: () => translate("The service does not accept files of this kind here."),
  body_too_large: () => translate("The file is too large."),
  no_space: () => translate("There is not enough free space on the disk of the service."),
  bad_parameter: () => translate("A value is not valid."),
  bad_name: () => translate("The name is not valid."),
  bad_class: () => translate("The name of a class is not valid."),
  bad_model_name: () => translate("The name of the model is not valid."),
  bad_setting: () => translate("The value of the setting is not valid."),
  bad_click: () => translate("The click is not valid."),
  unknown_label: () => translate("There is no such label."),
  unknown_class: () => translate("There is no such class."),
  unknown_encoder: () => translate("There is no such encoder."),
  too_many_data_sets: () => translate("There are too many data sets. Use one of them."),
  data_set_busy: () => translate("A task in the background uses the data set. Wait for its end."),
  data_set_used: () => translate("Trainings use the data set, so it cannot be deleted."),
  not_found: () => translate("This does not exist."),
  too_few_labels: () => translate("Too few parts have a label. Label more photographs first."),
  version_exists: () => translate("There is a model of this name and version already."),
  labels_changed: () => translate("Somebody has changed this meanwhile. Load it again."),
  thresholds_changed: () => translate("Somebody has changed this meanwhile. Load it again."),
  labels_fixed: () => translate("The models of this service cannot be changed here."),
  thresholds_fixed: () => translate("The thresholds of this model cannot be changed here."),
  no_candidate: () => translate("The model has no candidate."),
  no_report: () => translate("The model has no report."),
  report_changed: () => translate("The report of the model was deleted or has changed."),
  no_heat_map: () => translate("There is no heat map of this part: it was not stored, or deleted with the photograph."),
  models_fixed: () => translate("The models of this service cannot be changed here."),
  unusable_model: () => translate("The model cannot be used."),
  damaged_models: () => translate("Models are damaged."),
  too_many_inspections: () => translate("Too many inspections are selected."),
};

/** The message of a problem {detail, code, values} with which the service answered; null if it has none. */
export function problemText({ detail, code, values = {} }, answer = new Response()) {
  const shown = { seconds: answer.headers.get(WAIT) ?? "?", ...shownValues(values) };
  if (typeof detail !== "string" || !detail) return (LANGUAGE !== "en" && TEXTS[code]?.(shown)) || null;
  if (LANGUAGE === "en") return detail;
  if (TEXTS[code]) return TEXTS[code](shown);
  const text = photographText(detail);
  return DETAILED_TEXTS[code] && text === detail ? `${DETAILED_TEXTS[code]()} (${detail})` : text;
}

/**
 * A stored error: `detail` is its text in English, `cause` {code, values}, null for errors of earlier versions.
 *
 * `name` of the photograph that it is about stands before the text in other languages; the English text has it.
 */
export function storedText(detail, cause, name = "") {
  if (LANGUAGE === "en" || !cause) return detail;
  const text = problemText({ detail: cause.values.detail ?? detail, ...cause });
  return name ? `${name}: ${text}` : text;
}

/** Values as the language writes them: numbers, and the label of good photographs. */
function shownValues(values) {
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [name, shownValue(name, value)]));
}

function shownValue(name, value) {
  if (typeof value === "number") return formatNumber(value);
  return LABELS.includes(name) && value === "good" ? translate("good") : value;
}
