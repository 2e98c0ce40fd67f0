// The roles of users as texts.

import { translate } from "./language.js";

const ROLES = {
  operator: translate("operator"),
  reviewer: translate("reviewer"),
  quality: translate("quality"),
  engineer: translate("engineer"),
  administrator: translate("administrator"),
};

export function roleText(role) {
  return ROLES[role] ?? role;
}
