// The panel of a task: part, model predictions and verdict buttons.

import { byId, createElement } from "../shared/dom.js";
import { formatNumber, translate, translateCount } from "../shared/language.js";
import { planVerdictText } from "../shared/plan_text.js";
import { timeText } from "../shared/plant_time.js";
import { verdictKind, thresholdText, partName, scoreText, servingLabel, verdictText, warningText } from "../shared/record_text.js";
import { reasonText, reviewText } from "./format.js";

const MAX_RECENT = 4; // recent verdicts

/** Shows a task. */
export function showTask(task) {
  const { record, why, shadows, error } = task;
  const { answer, refusal } = record;
  const serving = servingLabel(record);
  byId("part").textContent = partName(record);
  byId("part").href = `parts/${record.record_id}`;
  byId("facts").textContent = [record.station, timeText(record.inspected_at)].filter(Boolean).join(" · ");
  const [title, text] = reasonText(task);
  byId("why").dataset.why = why;
  byId("why-title").textContent = title;
  byId("why-text").textContent = text;
  const own = refusal
    ? model(translate("Model in service"), refusal.model, { label: serving, score: null }, refusal.detail)
    : model(translate("Model in service"), answer.model, answer.decision, planVerdictText(answer.plan) || thresholdText(answer.decision));
  const candidates = shadows.map((shadow) => {
    const differs = shadow.label !== serving;
    const name = { name: shadow.model, version: shadow.version };
    return model(translate("Candidate"), name, shadow, differs ? translate("differs") : translate("agrees"), differs);
  });
  byId("models").replaceChildren(own, ...candidates);
  showWarnings(task);
  showNotice(error);
}

/** Shows the warnings of a photograph unlike the training, and whether it is confirmed as usual. */
export function showWarnings({ record, isUsual }) {
  byId("unlike").hidden = !record.unlike_training;
  const warnings = record.unlike_training ? record.answer.warnings : [];
  byId("warnings").replaceChildren(...warnings.map((warning) => createElement("li", "", warningText(warning))));
  byId("usual").disabled = isUsual;
  byId("usual").lastElementChild.textContent = isUsual ? translate("Confirmed as usual") : translate("Usual photograph");
}

/** Shows a button for each verdict, which calls `onJudge(label)`; keeps identical buttons. */
export function showVerdicts(task, onJudge) {
  const defects = task.defects.map(({ name, key }) => ({ label: name, key }));
  const shown = [{ label: "good", key: "G" }, ...defects, { label: "unsure", key: "U" }];
  const all = shown.map((verdict) => ({ ...verdict, text: reviewText(verdict.label, task.record) }));
  const wanted = JSON.stringify(all);
  if (byId("verdicts").dataset.shown === wanted) return;
  byId("verdicts").dataset.shown = wanted;
  byId("verdicts").replaceChildren(...all.map((verdict) => verdictButton(verdict, onJudge)));
}

/** Shows a message, or hides it if empty. */
export function showNotice(text) {
  byId("notice").textContent = text;
  byId("notice").hidden = !text;
}

/** Lists recent verdicts {task, verdict, state}, newest first. */
export function showRecent(judged) {
  byId("recent").hidden = byId("undo").disabled = !judged.length;
  const shown = judged.slice(-MAX_RECENT).reverse();
  byId("last").replaceChildren(...shown.map(({ task, verdict, state }) => {
    const item = createElement("li");
    item.dataset.kind = verdict ? verdictKind(verdict.label) : "none";
    const text = verdict ? reviewText(verdict.label, task.record) : translate("Skipped");
    item.append(createElement("strong", "", text), createElement("span", "", partName(task.record)), createElement("em", "", verdict ? state : ""));
    return item;
  }));
}

/** Shows the number of waiting parts, of verdicts in this session, and the pace. */
export function showCounts(waiting, tally) {
  const limit = 10_000; // the service counts no further
  const text = waiting >= limit ? translate("{count} or more waiting", { count: formatNumber(limit) }) : translateCount(waiting ?? 0, "{count} waiting", "{count} waiting");
  byId("waiting").textContent = waiting === null ? "" : text;
  byId("judged").textContent = translateCount(tally.count, "{count} reviewed", "{count} reviewed");
  byId("pace").textContent = tally.perHour === null ? "" : translate("{count} per hour", { count: formatNumber(tally.perHour) });
}

function model(role, { name, version }, { label, score }, note, differs = false) {
  const item = createElement("li");
  item.dataset.kind = verdictKind(label);
  item.classList.toggle("differs", differs);
  item.append(
    createElement("span", "who", `${role} · ${name} ${version}`),
    createElement("strong", "word", verdictText(label)),
    createElement("span", "score", score === null ? "" : translate("score {value}", { value: scoreText(score) })),
    createElement("span", "limits", note),
  );
  return item;
}

function verdictButton({ label, key, text }, onJudge) {
  const button = createElement("button");
  button.type = "button";
  button.dataset.kind = label === "unsure" ? "unsure" : verdictKind(label);
  button.dataset.label = label;
  if (key) button.setAttribute("aria-keyshortcuts", key);
  if (key) button.append(hidden(createElement("kbd", "", key)));
  button.append(createElement("span", "", text));
  // Ignores the second click of a double click: it would judge an unseen picture.
  button.addEventListener("click", (event) => event.detail > 1 || onJudge(label));
  return button;
}

function hidden(made) {
  made.setAttribute("aria-hidden", "true");
  return made;
}
