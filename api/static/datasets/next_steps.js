// The steps from photographs to a model in use, and which one is next.

import { byId, createElement } from "../shared/dom.js";
import { nextStep } from "../shared/empty_state.js";
import { formatNumber, translate } from "../shared/language.js";

const MIN_LABELS = 3; // of good and of defective photographs; the training makes three folds

/** Shows the steps for a data set; `jobs` are its trainings, the newest first. */
export function showSteps({ id, counts }, jobs) {
  const finished = jobs.filter(({ state }) => state === "done");
  const done = finished.find((job) => !job.for_proposals || job.used); // a training for proposals is only a first one
  const unfinished = jobs.filter(({ state }) => ["queued", "leased", "running"].includes(state));
  const proposing = unfinished.some((job) => job.for_proposals);
  const running = unfinished.find((job) => !job.for_proposals);
  const used = jobs.find((job) => job.used);
  const good = counts.labels.good ?? 0;
  const defective = counts.labelled - good - (counts.labels.ignore ?? 0);
  const hasPhotographs = counts.photographs > 0;
  const steps = [
    { title: translate("Add photographs"), note: "", href: "#drop-zone", isDone: hasPhotographs, role: "engineer" },
    {
      title: translate("Label photographs"),
      note: hasPhotographs ? translate("{good} good, {defective} defective, {unlabelled} without a label", numbers({ good, defective, unlabelled: counts.unlabelled })) : "",
      href: `label?data_set=${id}`,
      isDone: Math.min(good, defective) >= MIN_LABELS,
    },
    {
      title: translate("Let a model propose the rest"),
      note: proposing ? translate("A training runs.") : "",
      href: "#proposals-title",
      isDone: hasPhotographs && (!counts.unlabelled || finished.length > 0),
      role: "engineer",
    },
    {
      title: translate("Train a model"),
      note: running ? translate("A training runs.") : "",
      href: running ? `train?job=${running.id}` : `train?data_set=${id}`,
      isDone: Boolean(done),
      role: "engineer",
    },
    {
      title: translate("Use the model"),
      note: done ? `${done.model} ${done.version}` : "",
      href: done ? `train?job=${done.id}` : "train",
      isDone: Boolean(used),
      role: "engineer",
    },
    { title: translate("Inspect a photograph"), note: "", href: used ? `./?${new URLSearchParams({ model: used.model })}` : "./", isDone: false },
  ];
  const next = steps.findIndex(({ isDone }) => !isDone);
  byId("steps").replaceChildren(...steps.map((step, at) => item(step, at === next)));
}

function item({ title, note, href, isDone, role = null }, isNext) {
  const parts = isNext ? nextStep(title, href, role) : otherStep(title, href, role);
  if (isNext) parts[0].setAttribute("aria-current", "step");
  const mark = createElement("span", "mark", isDone ? "✓" : "");
  return createElement("li", "", mark, ...parts, createElement("span", "hint", note));
}

/** A link, which is only its text for users without the role of the step. */
function otherStep(title, href, role) {
  const link = createElement("a", "", title);
  link.href = href;
  if (role === null) return [link];
  link.dataset.needs = role;
  const text = createElement("span", "", title);
  text.dataset.lacks = role;
  return [link, text];
}

function numbers(values) {
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [name, formatNumber(value)]));
}
