// Writes a task onto the page: the part, what the models say, and the buttons for what a person may say.

import { kindOf, limitWords, momentWords, partWords, reasonWords, scoreWords, verdictWords } from "./words.js";

const MOST_SHOWN = 4; // verdicts of before

const part = (id) => document.getElementById(id);

/** Shows what is known of a task. */
export function showTask({ record, why, shadows, error }) {
  const { answer } = record;
  part("part").textContent = partWords(record);
  part("facts").textContent = [record.station, momentWords(record.inspected_at)].filter(Boolean).join(" · ");
  const [title, words] = reasonWords(why);
  part("why").dataset.why = why;
  part("why-title").textContent = title;
  part("why-words").textContent = words;
  const own = model("Model in service", answer.model, answer.decision, limitWords(answer.decision));
  const candidates = shadows.map((shadow) => {
    const differs = shadow.label !== answer.decision.label;
    const name = { name: shadow.model, version: shadow.version };
    return model("Candidate", name, shadow, differs ? "says otherwise" : "says the same", differs);
  });
  part("models").replaceChildren(own, ...candidates);
  showNotice(error);
}

/** Shows a button for each verdict, and calls `onJudge(label)`; the same ones stay as they are. */
export function showVerdicts(task, onJudge) {
  const defects = task.defects.map(({ name, key }) => ({ label: name, key }));
  const all = [{ label: "good", key: "G" }, ...defects, { label: "unsure", key: "U" }];
  const wanted = JSON.stringify(all);
  if (part("verdicts").dataset.shown === wanted) return;
  part("verdicts").dataset.shown = wanted;
  part("verdicts").replaceChildren(...all.map((verdict) => verdictButton(verdict, onJudge)));
}

/** Says why a verdict cannot be taken as it is; "" for none. */
export function showNotice(words) {
  part("notice").textContent = words;
  part("notice").hidden = !words;
}

/** Lists what was judged before, the last first, each {task, verdict, state}. */
export function showBefore(judged) {
  part("before").hidden = part("undo").disabled = !judged.length;
  const shown = judged.slice(-MOST_SHOWN).reverse();
  part("last").replaceChildren(...shown.map(({ task, verdict, state }) => {
    const item = element("li");
    item.dataset.kind = verdict ? kindOf(verdict.label) : "none";
    const words = verdict ? verdictWords(verdict.label) : "Skipped";
    item.append(element("strong", words), element("span", partWords(task.record)), element("em", verdict ? state : ""));
    return item;
  }));
}

/** Shows how many wait, how many were judged here, and how fast. */
export function showCounts(waiting, tally) {
  const most = 10_000; // no more are counted
  part("waiting").textContent = waiting === null ? "" : `${waiting >= most ? "10\u202f000 or more" : waiting} waiting`;
  part("judged").textContent = `${tally.count} judged`;
  part("pace").textContent = tally.perHour === null ? "" : `${tally.perHour} an hour`;
}

function model(role, { name, version }, { label, score }, note, differs = false) {
  const item = element("li");
  item.dataset.kind = kindOf(label);
  item.classList.toggle("differs", differs);
  item.append(
    element("span", `${role} · ${name} ${version}`, "who"),
    element("strong", verdictWords(label), "word"),
    element("span", `score ${scoreWords(score)}`, "score"),
    element("span", note, "limits"),
  );
  return item;
}

function verdictButton({ label, key }, onJudge) {
  const button = element("button");
  button.type = "button";
  button.dataset.kind = label === "unsure" ? "unsure" : kindOf(label);
  button.dataset.label = label;
  if (key) button.setAttribute("aria-keyshortcuts", key);
  if (key) button.append(hidden(element("kbd", key)));
  button.append(element("span", verdictWords(label)));
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
