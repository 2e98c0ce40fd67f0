// This page's requests to the service.

import { formatNumber, translate } from "../shared/language.js";
import { request } from "../shared/service.js";

const LARGE_FILE_BYTES = 2 ** 24; // proxies may reject larger files

/** All served models. */
export async function listModels(credentials) {
  const answer = await request("v1/models", { credentials });
  return (await answer.json()).models ?? [];
}

/**
 * Inspects one photograph with `model`, one of `listModels`, or the service's default if undefined.
 *
 * Returns {decision, json}: the decision, and the whole response as a Blob, so that masks of a long session do not
 * fill the memory. Calls `onWait(text)` while it waits for the service.
 */
export async function inspect(file, { model, credentials, onWait }) {
  const body = new FormData();
  body.append("file", file, file.name);
  const query = "predict?mask=scores";
  const path = model
    ? `v1/models/${encodeURIComponent(model.name)}/versions/${encodeURIComponent(model.version)}/${query}`
    : `v1/${query}`;
  const answer = await request(path, { method: "POST", body, credentials, onWait, noAnswer: connectionErrorText(file) });
  const json = await answer.blob();
  const { decision, plan } = JSON.parse(await json.text());
  return { decision: { ...decision, plan }, json };
}

function connectionErrorText({ size }) {
  const text = translate("No response: the service is stopped or unreachable, or the file is unreadable.");
  if (size <= LARGE_FILE_BYTES) return text;
  const megabytes = formatNumber(size / 1e6, { maximumFractionDigits: 0 });
  return `${text} ${translate("A proxy may also reject a file of {megabytes} MB.", { megabytes })}`;
}
