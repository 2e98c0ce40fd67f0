// The roles of users as texts.

import { translate } from "./language.js";

export function roleText(role) {
  return translate(role);
}
