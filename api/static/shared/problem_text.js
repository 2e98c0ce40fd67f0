// Errors of the service that people meet often, in the language of the page. The service explains them in English.

import { LANGUAGE, translate } from "./language.js";
import { photographText } from "./photograph_sentences.js";

const WAIT = "Retry-After";

const TEXTS = {
  log_in_failed: () => translate("The name or the password is wrong."),
  log_in_locked: (answer) => translate("Too many failed attempts for this name. Try again in {seconds} s.", { seconds: answer.headers.get(WAIT) ?? "?" }),
  link_not_valid: () => translate("This link was used or has expired. Ask an administrator for a new one."),
  not_logged_in: () => translate("Log in first."),
  role_too_low: () => translate("Your role does not allow this. Ask an administrator."),
  weak_password: () => translate("Expected a password of 10 to 200 characters that is not the name."),
  user_exists: () => translate("There is a user of this name already."),
  no_administrator: () => translate("At least one user must be an administrator."),
  review_off: () => translate("Nobody may read the record here before there are users. Ask an administrator."),
  record_unavailable: () => translate("The record cannot be used now. Try again later."),
};

/** The message of a problem {detail, code} with which the service answered; null if it has none. */
export function problemText({ detail, code }, answer) {
  const known = LANGUAGE === "en" ? undefined : TEXTS[code];
  return known?.(answer) ?? (typeof detail === "string" && detail ? photographText(detail) : null);
}
