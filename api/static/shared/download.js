// Downloads that the browser writes to the disk while they arrive, so that they do not fill the memory of the page.

import { translate } from "./language.js";
import { saveFile } from "./save_file.js";
import { request, ServiceError } from "./service.js";

const UNAUTHORIZED = 401;
const KEY_NEEDED = translate("Log in, or enter an API key.");

/**
 * Saves the answer to a GET of `path`, with the name that the service gives it.
 *
 * Without an API key the browser downloads it by itself, so that a failure is known only later: it is passed to
 * `onProblem(error)`.
 */
export async function download(path, credentials, onProblem) {
  if (credentials.key) await saveAnswer(await request(path, { credentials }));
  else openInFrame(path, (problem) => explain(problem, path, credentials, onProblem));
}

/** Opens `path` in a hidden frame: a file is saved by the browser, and any other answer is a problem. */
function openInFrame(path, onProblem) {
  document.getElementById("download-frame")?.remove();
  const frame = document.createElement("iframe");
  Object.assign(frame, { id: "download-frame", src: path, hidden: true });
  frame.addEventListener("load", () => onProblem(problemIn(frame.contentDocument)));
  document.body.append(frame);
}

/** The problem {status, code, detail} that a frame shows; an empty one if it is none of the service. */
function problemIn(content) {
  try {
    return JSON.parse(content.querySelector("pre").textContent);
  } catch {
    return {};
  }
}

async function explain(problem, path, credentials, onProblem) {
  const isUnknown = problem.status === UNAUTHORIZED;
  if (isUnknown && (await credentials.renew("", ""))) return download(path, credentials, onProblem).catch(onProblem);
  const text = isUnknown ? KEY_NEEDED : problem.detail;
  return onProblem(new ServiceError(text ?? translate("The file cannot be downloaded."), problem.status, problem.code));
}

/** Writes an answer to a file that the user chooses, or collects it in the memory where a browser cannot do so. */
async function saveAnswer(answer) {
  const suggestedName = nameOf(answer);
  const file = await window.showSaveFilePicker?.({ suggestedName }).catch((error) => {
    if (error.code === DOMException.ABORT_ERR) return answer.body.cancel().then(() => null); // the user declined
    return undefined; // the click was too long ago
  });
  if (file === undefined) saveFile(await answer.blob(), suggestedName);
  else if (file !== null) await answer.body.pipeTo(await file.createWritable());
}

function nameOf(answer) {
  const header = answer.headers.get("Content-Disposition") ?? "";
  const [, encoded] = /filename\*=UTF-8''([^;]+)/.exec(header) ?? [];
  return encoded ? decodeURIComponent(encoded) : (/filename="([^"]+)"/.exec(header)?.[1] ?? "segdec");
}
