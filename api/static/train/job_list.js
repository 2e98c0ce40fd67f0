// The list of trainings and the list of workers.

import { byId, createElement } from "../shared/dom.js";
import { emptyState, nextStep, whoCan } from "../shared/empty_state.js";
import { formatDecimals, translate } from "../shared/language.js";
import { timeText } from "../shared/plant_time.js";
import { completedShare, ratingText, stateText } from "./job_text.js";

/** Shows the trainings as links; without any, the next step. */
export function showJobs(jobs, hasDataSets) {
  if (jobs.length) byId("no-job").replaceChildren();
  else if (!byId("no-job").firstChild) byId("no-job").append(noJobs(hasDataSets));
  byId("jobs").replaceChildren(...jobs.map((job) => jobItem(job)));
}

function noJobs(hasDataSets) {
  const text = translate("This page shows trainings with their curves and results. A training makes a model of the labelled photographs of a data set.");
  const step = hasDataSets ? [whoCan(translate("Start training"), "engineer")] : nextStep(translate("Create a data set"), "datasets", "engineer");
  return emptyState(translate("No training yet"), text, ...step);
}

/** Shows the workers; without any, how to start one. */
export function showWorkers(workers) {
  byId("no-worker").hidden = workers.length > 0;
  byId("service-address").textContent = new URL(".", document.baseURI).href;
  byId("workers").replaceChildren(...workers.map(({ name, machine, address, job, rank, seen_at: seenAt, problem }) => {
    const training = rank === null ? translate("trains {job}", { job }) : translate("trains {job} with other workers, rank {rank}", { job, rank });
    const state = job ? training : translate("last seen {time}", { time: timeText(seenAt) });
    const facts = [machineText(machine), address, state, problem].filter(Boolean).join(" · ");
    return createElement("li", "", createElement("strong", "", name), createElement("span", "", facts));
  }));
}

function jobItem(job) {
  const link = createElement("a", "", `${job.model} ${job.version}`);
  link.href = `train?job=${job.id}`;
  const source = translate("{data_set}, version {version}", { data_set: job.data_set_name, version: job.data_set_version });
  const facts = createElement("span", "", `${source} · ${timeText(job.created_at)}`);
  const item = createElement("li", "", link, stateBadge(job), facts);
  const share = completedShare(job);
  if (share !== null) item.append(Object.assign(createElement("progress", ""), { max: 1, value: share }));
  return item;
}

function stateBadge(job) {
  const level = job.outcome?.rating?.level;
  const precision = job.outcome?.metrics?.average_precision;
  const parts = [stateText(job), level && ratingText(level), precision !== undefined && precision !== null && `AP ${formatDecimals(precision, 3)}`];
  const badge = createElement("em", "", parts.filter(Boolean).join(" · "));
  badge.dataset.state = job.state;
  return badge;
}

function machineText({ system, cpus, gpus }) {
  const gpuText = Number(gpus) ? translate("GPUs: {count}", { count: gpus }) : translate("no GPU");
  return [system, cpus && translate("processors: {count}", { count: cpus }), gpuText].filter(Boolean).join(", ");
}
