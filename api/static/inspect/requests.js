// What this page asks of the service.

import { request } from "../shared/service.js";

const LARGE_FILE_BYTES = 2 ** 24; // bytes, from which on proxies refuse files

/** All served models; an empty list when they cannot be told. */
export async function listModels(key) {
  const answer = await request("v1/models", { key });
  return (await answer.json()).models ?? [];
}

/**
 * Has one photograph inspected; `model` is one of `listModels` or nothing for the service's default.
 *
 * Returns {decision, json}: the answer's decision, and all of it as it came, a Blob: a long session would
 * fill the memory with masks otherwise. `onWait(text)` is told what is waited for.
 */
export async function inspect(file, { model, key, onWait }) {
  const body = new FormData();
  body.append("file", file, file.name);
  const query = "predict?mask=scores";
  const path = model
    ? `v1/models/${encodeURIComponent(model.name)}/versions/${encodeURIComponent(model.version)}/${query}`
    : `v1/${query}`;
  const answer = await request(path, { method: "POST", body, key, onWait, noAnswer: connectionErrorText(file) });
  const json = await answer.blob();
  return { decision: JSON.parse(await json.text()).decision, json };
}

function connectionErrorText({ size }) {
  const large = size > LARGE_FILE_BYTES ? ` It may also refuse a file of ${(size / 1e6).toFixed(0)} MB.` : "";
  return `No answer. The service is stopped or cannot be reached, or the file cannot be read.${large}`;
}
