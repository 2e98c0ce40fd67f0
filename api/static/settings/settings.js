// The settings page: settings of the service, and its users.

import { attempt } from "../shared/attempt.js";
import { byId, createElement, setText } from "../shared/dom.js";
import { askForCredentials } from "../shared/credentials_prompt.js";
import { formatNumber, translate } from "../shared/language.js";
import { timeText } from "../shared/plant_time.js";
import { Credentials } from "../shared/credentials.js";
import { GROUPS, valueText } from "../shared/setting_texts.js";
import { whoCan } from "../shared/empty_state.js";
import { roleText } from "../shared/role_text.js";
import { currentSession, hasRole } from "../shared/session.js";
import { SettingRequests } from "./requests.js";
import { UserTable } from "./user_table.js";

const credentials = new Credentials(askForCredentials);
const requests = new SettingRequests(credentials);
const users = new UserTable(requests, credentials);

async function load() {
  const settings = await attempt(credentials, () => requests.settings());
  if (!settings) return;
  const { user, local_roles: localRoles } = await currentSession();
  showOpenAccess(localRoles.at(-1));
  byId("open-access").after(whoCan(translate("Change settings"), "engineer"));
  const mayEdit = hasRole(user ?? { roles: localRoles }, "engineer") || (!user && Boolean(credentials.key));
  present(settings, mayEdit);
  if (user ? hasRole(user, "administrator") : credentials.key) await users.load();
}

/** Says that a log-in is not needed; `role` is that of everybody on this machine. */
function showOpenAccess(role) {
  byId("open-access").hidden = !role;
  if (!role) return;
  setText(byId("open-access"), translate("There are no users: everybody on this machine has the role {role}. Add the first one with: python -m api user add NAME --role administrator", { role: roleText(role) }));
}

function present(settings, mayEdit) {
  const known = new Map(settings.map((setting) => [setting.name, setting]));
  const sections = GROUPS.map(({ title, settings: texts }) => {
    const rows = Object.entries(texts).map(([name, text]) => settingRow(known.get(name), text, mayEdit));
    return createElement("section", "", createElement("h2", "", title), ...rows);
  });
  byId("groups").replaceChildren(...sections);
}

function settingRow(setting, text, mayEdit) {
  const title = createElement("h3", "", text.title);
  if (!setting.is_changeable) {
    const hint = createElement("p", "hint", translate("Set at the start: {setting}", { setting: `--${setting.name.replaceAll("_", "-")}` }));
    return createElement("div", "row", title, createElement("p", "value", valueText(setting.value, text)), hint);
  }
  const hint = createElement("p", "hint", text.hint, ...changeNote(setting, text));
  if (!mayEdit) return createElement("div", "row", title, createElement("p", "value", valueText(setting.value, text)), hint);
  return createElement("div", "row", title, form(setting, text), hint);
}

function changeNote({ changed_by: who, changed_at: at, started }, text) {
  if (at === null) return [];
  const values = { name: who || translate("an unknown person"), time: timeText(at), value: valueText(started, text) };
  return [` ${translate("Changed by {name}, {time}; {value} at the start.", values)}`];
}

function form(setting, text) {
  const input = createElement("input", "");
  input.setAttribute("aria-label", text.title);
  input.value = inputText(setting.value);
  input.inputMode = text.kind === "number" ? "decimal" : "text";
  if (text.kind === "zone") input.setAttribute("list", "zones");
  const save = createElement("button", "", translate("Save"));
  const made = createElement("form", "", input, text.unit ?? "", save);
  const problem = createElement("p", "problem");
  problem.setAttribute("role", "alert");
  made.append(problem);
  if (setting.changed_at !== null) made.append(resetButton(setting, problem));
  made.addEventListener("submit", (event) => {
    event.preventDefault();
    change(problem, () => requests.change(setting.name, parse(input.value.trim(), text)));
  });
  return made;
}

function resetButton({ name }, problem) {
  const button = createElement("button", "", translate("Value of the start"));
  button.type = "button";
  button.addEventListener("click", () => change(problem, () => requests.reset(name)));
  return button;
}

async function change(problem, act) {
  setText(problem, "");
  try {
    present(await act(), true);
  } catch (error) {
    setText(problem, error.message);
  }
}

/** The value as JSON: a decimal comma is accepted; the service checks other text. */
function parse(value, { kind }) {
  if (kind !== "number") return value;
  const number = Number(value.replace(",", "."));
  return value === "" ? null : Number.isFinite(number) ? number : value;
}

function inputText(value) {
  return typeof value === "number" ? formatNumber(value, { maximumFractionDigits: 20, useGrouping: false }) : (value ?? "");
}

byId("zones").append(...Intl.supportedValuesOf("timeZone").map((zone) => new Option(zone, zone)));
byId("forget-key").addEventListener("click", () => {
  credentials.forgetKey();
  location.reload();
});
await load();
