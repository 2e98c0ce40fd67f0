// Photographs as input: dropped, chosen, pasted or taken with the phone's camera.

import { byId } from "../shared/dom.js";
import { translate } from "../shared/language.js";

/** Calls `onFiles(files)` with an array of new files, and `onError(text)` if input has no readable file. */
export function listenForFiles(onFiles, onError) {
  for (const id of ["files", "shot"]) {
    const input = byId(id);
    const take = () => {
      onFiles([...input.files]);
      input.value = ""; // allows choosing the same file again
    };
    input.addEventListener("change", take);
    if (input.files.length) take(); // chosen before this script ran
  }
  document.addEventListener("paste", (event) => {
    if (event.clipboardData?.files.length) onFiles([...event.clipboardData.files]);
  });
  listenForDrops(onFiles, onError);
}

function listenForDrops(onFiles, onError) {
  const showDropping = (dropping) => document.body.classList.toggle("dropping", dropping);
  document.addEventListener("dragover", (event) => {
    event.preventDefault(); // prevents the browser from opening the file
    showDropping(true);
  });
  document.addEventListener("dragleave", (event) => {
    if (!event.relatedTarget) showDropping(false);
  });
  document.addEventListener("drop", async (event) => {
    event.preventDefault();
    showDropping(false);
    try {
      const files = await droppedFiles(event.dataTransfer);
      if (files.length) onFiles(files);
      else onError(translate("The dropped item contains no files. Drop photographs or a folder of photographs."));
    } catch (error) {
      onError(translate("The dropped files cannot be read: {reason}", { reason: error.message }));
    }
  });
}

/** The dropped files, and the files directly inside dropped folders. */
async function droppedFiles(transfer) {
  const items = [...transfer.items].filter((item) => item.kind === "file");
  const taken = items.map((item) => ({ entry: item.webkitGetAsEntry?.(), file: item.getAsFile() }));
  const lists = await Promise.all(
    taken.map(({ entry, file }) => (entry?.isDirectory ? filesInFolder(entry) : [file])),
  );
  return lists.flat().filter(Boolean);
}

async function filesInFolder(folder) {
  const reader = folder.createReader();
  const files = [];
  for (;;) {
    const entries = await new Promise((resolve, reject) => reader.readEntries(resolve, reject));
    if (!entries.length) return files;
    const found = entries.filter((entry) => entry.isFile && !entry.name.startsWith("."));
    files.push(...(await Promise.all(found.map((entry) => new Promise((done, fail) => entry.file(done, fail))))));
  }
}
