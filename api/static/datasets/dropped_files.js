// The files of a drop, a choice or the clipboard, with their paths.

const HIDDEN = /(^|\/)(\.|__MACOSX\/|Thumbs\.db$|desktop\.ini$)/i;

/** The files [{path, file}] of a `DataTransfer`; folders are read. */
export async function filesOfDrop(transfer) {
  const entries = [...transfer.items].map((item) => item.kind === "file" && item.webkitGetAsEntry?.());
  if (!entries.some(Boolean)) return filesOfList(transfer.files);
  const found = [];
  for (const entry of entries) if (entry) await readEntry(entry, found);
  return visible(found);
}

/** The files [{path, file}] of a `FileList`. */
export function filesOfList(files) {
  return visible([...files].map((file) => ({ path: file.webkitRelativePath || file.name, file })));
}

async function readEntry(entry, found) {
  if (entry.isFile) {
    const file = await new Promise((resolve, reject) => entry.file(resolve, reject));
    found.push({ path: entry.fullPath.replace(/^\//, "") || file.name, file });
    return;
  }
  const reader = entry.createReader();
  for (;;) {
    const some = await new Promise((resolve, reject) => reader.readEntries(resolve, reject)); // at most 100
    if (!some.length) return;
    for (const inner of some) await readEntry(inner, found);
  }
}

function visible(files) {
  return files.filter(({ path }) => !HIDDEN.test(path));
}
