// Writes a task onto the page: the part, what the models say, and the buttons for what a person may say.

import { byId } from "../shared/dom.js";
import { verdictKind, thresholdText, timeText, partName, reasonText, scoreText, verdictText } from "./format.js";

const MAX_RECENT = 4; // verdicts of before

/** Shows what is known of a task. */
export function showTask({ record, why, shadows, error }) {
  const { answer } = record;
  byId("part").textContent = partName(record);
  byId("facts").textContent = [record.station, timeText(record.inspected_at)].filter(Boolean).join(" · ");
  const [title, words] = reasonText(why);
  byId("why").dataset.why = why;
  byId("why-title").textContent = title;
  byId("why-words").textContent = words;
  const own = model("Model in service", answer.model, answer.decision, thresholdText(answer.decision));
  const candidates = shadows.map((shadow) => {
    const differs = shadow.label !== answer.decision.label;
    const name = { name: shadow.model, version: shadow.version };
    return model("Candidate", name, shadow, differs ? "says otherwise" : "says the same", differs);
  });
  byId("models").replaceChildren(own, ...candidates);
  showNotice(error);
}

/** Shows a button for each verdict, and calls `onJudge(label)`; the same ones stay as they are. */
export function showVerdicts(task, onJudge) {
  const defects = task.defects.map(({ name, key }) => ({ label: name, key }));
  const all = [{ label: "good", key: "G" }, ...defects, { label: "unsure", key: "U" }];
  const wanted = JSON.stringify(all);
  if (byId("verdicts").dataset.shown === wanted) return;
  byId("verdicts").dataset.shown = wanted;
  byId("verdicts").replaceChildren(...all.map((verdict) => verdictButton(verdict, onJudge)));
}

/** Says why a verdict cannot be taken as it is; "" for none. */
export function showNotice(words) {
  byId("notice").textContent = words;
  byId("notice").hidden = !words;
}

/** Lists what was judged before, the last first, each {task, verdict, state}. */
export function showRecent(judged) {
  byId("before").hidden = byId("undo").disabled = !judged.length;
  const shown = judged.slice(-MOST_SHOWN).reverse();
  byId("last").replaceChildren(...shown.map(({ task, verdict, state }) => {
    const item = element("li");
    item.dataset.kind = verdict ? verdictKind(verdict.label) : "none";
    const words = verdict ? verdictText(verdict.label) : "Skipped";
    item.append(element("strong", words), element("span", partName(task.record)), element("em", verdict ? state : ""));
    return item;
  }));
}

/** Shows how many wait, how many were judged here, and how fast. */
export function showCounts(waiting, tally) {
  const most = 10_000; // no more are counted
  byId("waiting").textContent = waiting === null ? "" : `${waiting >= most ? "10\u202f000 or more" : waiting} waiting`;
  byId("judged").textContent = `${tally.count} judged`;
  byId("pace").textContent = tally.perHour === null ? "" : `${tally.perHour} an hour`;
}

function model(role, { name, version }, { label, score }, note, differs = false) {
  const item = element("li");
  item.dataset.kind = verdictKind(label);
  item.classList.toggle("differs", differs);
  item.append(
    element("span", `${role} · ${name} ${version}`, "who"),
    element("strong", verdictText(label), "word"),
    element("span", `score ${scoreText(score)}`, "score"),
    element("span", note, "limits"),
  );
  return item;
}

function verdictButton({ label, key }, onJudge) {
  const button = element("button");
  button.type = "button";
  button.dataset.kind = label === "unsure" ? "unsure" : verdictKind(label);
  button.dataset.label = label;
  if (key) button.setAttribute("aria-keyshortcuts", key);
  if (key) button.append(hidden(element("kbd", key)));
  button.append(element("span", verdictText(label)));
  // A double click is one verdict: the second click would be about a picture that nobody has seen.
  button.addEventListener("click", (event) => event.detail > 1 || onJudge(label));
  return button;
}

function hidden(made) {
  made.setAttribute("aria-hidden", "true");
  return made;
}

function element(name, words = "", kind = "") {
  const made = document.createElement(name);
  made.textContent = words;
  if (kind) made.className = kind;
  return made;
}
