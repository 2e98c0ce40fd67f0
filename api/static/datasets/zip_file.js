// Packs files into a ZIP file without compression: photographs are compressed already.

import { translate } from "../shared/language.js";

const MAX_BYTES = 2 ** 32 - 1; // larger files need another form of ZIP
const MAX_FILES = 2 ** 16 - 1;
const LOCAL = 0x04034b50;
const CENTRAL = 0x02014b50;
const END = 0x06054b50;
const VERSION = 20;
const UTF8 = 0x0800;
const DATE = 33; // 1980-01-01, the first one that ZIP knows

const TABLE = Uint32Array.from({ length: 256 }, (_, byte) => {
  let value = byte;
  for (let bit = 0; bit < 8; bit++) value = value & 1 ? 0xedb88320 ^ (value >>> 1) : value >>> 1;
  return value;
});

/** A Blob with the files [{path, file}]; calls `onProgress(share)`. Throws an Error if they are too many or too large. */
export async function packFiles(files, onProgress = () => {}) {
  const total = files.reduce((sum, { file }) => sum + file.size, 0);
  if (files.length > MAX_FILES || total > 0.99 * MAX_BYTES) {
    throw new Error(translate("The folder is too large to be packed in the browser. Pack it as a ZIP file, or use: python -m datasets push"));
  }
  const pieces = [];
  const entries = [];
  let offset = 0;
  for (const { path, file } of files) {
    const name = new TextEncoder().encode(path);
    const facts = { name, size: file.size, crc: crc32(new Uint8Array(await file.arrayBuffer())), offset };
    const head = localHeader(facts);
    pieces.push(head, name, file);
    entries.push(facts);
    offset += head.length + name.length + file.size;
    onProgress(offset / total);
  }
  const directory = entries.flatMap((facts) => [centralHeader(facts), facts.name]);
  const length = directory.reduce((sum, piece) => sum + piece.length, 0);
  return new Blob([...pieces, ...directory, endRecord(entries.length, length, offset)], { type: "application/zip" });
}

function crc32(bytes) {
  let value = 0xffffffff;
  for (let index = 0; index < bytes.length; index++) value = TABLE[(value ^ bytes[index]) & 255] ^ (value >>> 8);
  return (value ^ 0xffffffff) >>> 0;
}

function localHeader({ name, size, crc }) {
  return fields([4, LOCAL], ...common(name, size, crc), [2, 0]);
}

function centralHeader({ name, size, crc, offset }) {
  return fields([4, CENTRAL], [2, VERSION], ...common(name, size, crc), [2, 0], [2, 0], [2, 0], [2, 0], [4, 0], [4, offset]);
}

/** What both headers have: version, flags, method, time, date, CRC, two sizes, length of the name. */
function common(name, size, crc) {
  return [[2, VERSION], [2, UTF8], [2, 0], [2, 0], [2, DATE], [4, crc], [4, size], [4, size], [2, name.length]];
}

function endRecord(count, length, offset) {
  return fields([4, END], [2, 0], [2, 0], [2, count], [2, count], [4, length], [4, offset], [2, 0]);
}

/** Bytes of numbers [size, value], the lowest byte first. */
function fields(...numbers) {
  const bytes = new Uint8Array(numbers.reduce((sum, [size]) => sum + size, 0));
  const view = new DataView(bytes.buffer);
  let place = 0;
  for (const [size, value] of numbers) {
    if (size === 2) view.setUint16(place, value, true);
    else view.setUint32(place, value, true);
    place += size;
  }
  return bytes;
}
