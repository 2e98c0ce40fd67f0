// Adds photographs: dropped, chosen or pasted files, folders and ZIP files.

import { byId, createElement, setText } from "../shared/dom.js";
import { formatNumber, translate, translateCount } from "../shared/language.js";
import { filesOfDrop, filesOfList } from "./dropped_files.js";
import { sendArchive } from "./send_archive.js";
import { packFiles } from "./zip_file.js";

const MAX_CONCURRENT = 3;
const MAX_SHOWN = 50; // problems
const ARCHIVE = /\.zip$/i;
const PHOTOGRAPH = /\.(png|jpe?g|bmp|tiff?|webp)$/i;

export class Upload {
  /** Calls `onImport()` after an archive was sent, and `onAdded()` after photographs were. */
  constructor(id, requests, { onImport, onAdded }) {
    Object.assign(this, { id, requests, onImport, onAdded });
    this.running = null; // AbortController of the upload
    for (const name of ["files", "folder"]) {
      byId(name).addEventListener("change", ({ target }) => {
        const chosen = filesOfList(target.files);
        target.value = "";
        this.#send(chosen);
      });
    }
    byId("stop").addEventListener("click", () => this.running?.abort());
    this.#acceptDrops();
    document.addEventListener("paste", ({ clipboardData }) => this.#paste(clipboardData));
  }

  #acceptDrops() {
    const zone = byId("drop-zone");
    const mark = (isOver) => zone.classList.toggle("over", isOver);
    document.addEventListener("dragover", (event) => {
      event.preventDefault();
      mark(true);
    });
    document.addEventListener("dragleave", ({ relatedTarget }) => relatedTarget || mark(false));
    document.addEventListener("drop", async (event) => {
      event.preventDefault();
      mark(false);
      this.#send(await filesOfDrop(event.dataTransfer));
    });
  }

  #paste({ files }) {
    const name = translate("Pasted {time}", { time: new Date().toISOString().slice(0, 19) });
    const pasted = filesOfList(files).map(({ path, file }) => ({ path: path === "image.png" ? `${name}.png` : path, file }));
    if (pasted.length) this.#send(pasted);
  }

  /** Sends ZIP files, folders with labels and single photographs, one kind after the other. */
  async #send(files) {
    if (!files.length) return;
    if (this.running) {
      this.#showProblems([translate("Wait until the running upload has ended.")]);
      return;
    }
    this.running = new AbortController();
    this.#showProblems([]);
    byId("progress").hidden = false;
    const { archives, folder, photographs, others } = this.#sort(files);
    const problems = others.map(({ path, file }) =>
      file.size ? translate("{name} is not a photograph and was not sent.", { name: path }) : translate("{name} is empty and was not sent.", { name: path }));
    for (const { path, file } of archives) problems.push(...(await this.#sendArchive(path, file)));
    if (folder.length) problems.push(...(await this.#sendFolder(folder)));
    if (photographs.length) problems.push(...(await this.#sendPhotographs(photographs)));
    byId("progress").hidden = true;
    this.running = null;
    this.#showProblems(problems);
  }

  #sort(files) {
    const archives = files.filter(({ path }) => ARCHIVE.test(path));
    const rest = files.filter(({ path }) => !ARCHIVE.test(path));
    const withLabels = byId("with-labels").checked && rest.some(({ path }) => path.includes("/"));
    if (withLabels) return { archives, folder: rest, photographs: [], others: [] };
    const isPhotograph = ({ path, file }) => PHOTOGRAPH.test(path) && file.size > 0;
    const [photographs, others] = [true, false].map((wanted) => rest.filter((one) => isPhotograph(one) === wanted));
    return { archives, folder: [], photographs, others };
  }

  async #sendFolder(files) {
    const name = files[0].path.split("/")[0];
    try {
      const archive = await packFiles(files, (share) => this.#show(share, translate("Packing {name}", { name })));
      return await this.#sendArchive(name, archive);
    } catch (error) {
      return [error.message];
    }
  }

  async #sendArchive(name, archive) {
    const onProgress = (share) => this.#show(share, translate("Sending {name}", { name }));
    const { credentials } = this.requests;
    const options = { withLabels: byId("with-labels").checked, credentials, onProgress, signal: this.running.signal };
    onProgress(0);
    try {
      await sendArchive(this.id, name, archive, options);
      this.onImport();
      return [];
    } catch (error) {
      return [`${name}: ${error.message}`];
    }
  }

  /** Sends photographs, a few at a time; continues after failures, whose texts it returns. */
  async #sendPhotographs(files) {
    const waiting = [...files];
    const counts = { added: 0, restored: 0, present: 0 };
    const problems = [];
    let done = 0;
    const { signal } = this.running;
    const work = async () => {
      for (let next; !signal.aborted && (next = waiting.shift()); ) {
        const name = next.path.replace(/\.[^./]+$/, "").slice(-256);
        try {
          counts[(await this.requests.add(this.id, name, next.file)).outcome]++;
        } catch (error) {
          problems.push(`${next.path}: ${error.message}`);
        }
        this.#show(++done / files.length, progressText(done, files.length));
      }
    };
    this.#show(0, progressText(0, files.length));
    await Promise.all(Array.from({ length: MAX_CONCURRENT }, work));
    this.onAdded();
    const { length: unsent } = waiting;
    if (unsent) problems.push(translateCount(unsent, "Stopped: {count} photograph was not sent.", "Stopped: {count} photographs were not sent."));
    if (counts.present) {
      problems.push(translateCount(counts.present, "{count} photograph was in the data set already.", "{count} photographs were in the data set already."));
    }
    return problems;
  }

  #show(share, text) {
    byId("progress-bar").value = share;
    setText(byId("progress-text"), text);
  }

  #showProblems(problems) {
    const shown = problems.slice(0, MAX_SHOWN);
    if (problems.length > MAX_SHOWN) shown.push(translate("and {count} more", { count: problems.length - MAX_SHOWN }));
    byId("upload-problems").replaceChildren(...shown.map((text) => createElement("p", "", text)));
  }
}

function progressText(done, all) {
  return translateCount(all, "{done} of {count} photograph", "{done} of {count} photographs", { done: formatNumber(done) });
}
