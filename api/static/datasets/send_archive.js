// Sends an archive with its progress, which `fetch` does not report.

import { translate } from "../shared/language.js";
import { explain, requestHeaders, ServiceError } from "../shared/service.js";
import { pathOf } from "./requests.js";

/**
 * Sends the Blob `archive` to a data set; returns the import. Calls `onProgress(share)`; `signal` stops it.
 *
 * Throws a ServiceError.
 */
export async function sendArchive(id, name, archive, { withLabels, credentials, onProgress, signal }) {
  const query = new URLSearchParams({ name: name.slice(-128), labels: withLabels ? "read" : "none" });
  const sending = new XMLHttpRequest();
  sending.open("POST", `${pathOf(id)}/archives?${query}`);
  const headers = { "Content-Type": "application/zip", ...(await requestHeaders("POST", credentials.key)) };
  for (const [header, value] of Object.entries(headers)) sending.setRequestHeader(header, value);
  sending.upload.addEventListener("progress", ({ loaded, total }) => onProgress(loaded / total));
  const answer = await new Promise((resolve, reject) => {
    const fail = () => reject(new ServiceError(translate("No response: the service is stopped or unreachable.")));
    sending.addEventListener("load", () => resolve(responseOf(sending)));
    sending.addEventListener("error", fail);
    sending.addEventListener("abort", () => reject(new ServiceError(translate("Stopped."))));
    signal.addEventListener("abort", () => sending.abort());
    sending.send(archive);
  });
  if (!answer.ok) throw await explain(answer);
  return answer.json();
}

function responseOf(sending) {
  const { responseText, status, statusText } = sending;
  const headers = { "Content-Type": sending.getResponseHeader("Content-Type") ?? "" };
  return new Response(responseText, { status, statusText, headers });
}
