// Takes photographs: dropped, chosen, pasted or taken with the phone's camera.

/** Calls `onFiles(files)`, an array, for what arrives on the page, and `onError(words)` for what cannot be read. */
export function listenForFiles(onFiles, onError) {
  for (const id of ["files", "shot"]) {
    const input = document.getElementById(id);
    input.addEventListener("change", () => {
      onFiles([...input.files]);
      input.value = ""; // so that the same file can be chosen again
    });
  }
  document.addEventListener("paste", (event) => {
    if (event.clipboardData?.files.length) onFiles([...event.clipboardData.files]);
  });
  listenForDrops(onFiles, onError);
}

function listenForDrops(onFiles, onError) {
  const showDropping = (dropping) => document.body.classList.toggle("dropping", dropping);
  document.addEventListener("dragover", (event) => {
    event.preventDefault(); // else the browser would open the file in place of the page
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
      else onError("What was dropped holds no files. Drop photographs, or a folder of them.");
    } catch (error) {
      onError(`What was dropped cannot be read: ${error.message}`);
    }
  });
}

/** The dropped files; a folder is opened, one level deep. */
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
