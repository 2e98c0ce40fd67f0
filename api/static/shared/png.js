// Lossless 8-bit greyscale PNG.
//
// Not a canvas: browsers with fingerprinting protection alter pixels read from one, and it needs four times the memory.

import { translate } from "./language.js";

const SIGNATURE = [137, 80, 78, 71, 13, 10, 26, 10];
const GREY_8_BIT = [8, 0, 0, 0, 0]; // depth, colour, compression, filters, no interlace

/** Reads `bytes`: {width, height, pixels} with one byte for each pixel, row by row. */
export async function readGrey(bytes) {
  if (SIGNATURE.some((value, index) => bytes[index] !== value)) throw new Error(translate("The mask is not a PNG file."));
  const packed = [];
  let header;
  for (const { type, data } of chunksOf(bytes)) {
    if (type === "IHDR") header = data;
    if (type === "IDAT") packed.push(data);
  }
  if (!header || GREY_8_BIT.some((value, index) => header[8 + index] !== value)) {
    throw new Error(translate("The mask is not an 8-bit greyscale PNG file."));
  }
  const size = new DataView(header.buffer, header.byteOffset);
  const [width, height] = [size.getUint32(0), size.getUint32(4)];
  const rows = await through(new DecompressionStream("deflate"), packed);
  if (rows.length !== (width + 1) * height) throw new Error(translate("The mask is truncated."));
  return { width, height, pixels: unfilter(rows, width, height) };
}

/** Writes `pixels`, one byte for each, as a PNG. */
export async function writeGrey(width, height, pixels) {
  const rows = new Uint8Array((width + 1) * height); // each row begins with its filter type, 0 = none
  for (let y = 0; y < height; y++) {
    rows.set(pixels.subarray(y * width, (y + 1) * width), y * (width + 1) + 1);
  }
  const header = new Uint8Array([0, 0, 0, 0, 0, 0, 0, 0, ...GREY_8_BIT]);
  new DataView(header.buffer).setUint32(0, width);
  new DataView(header.buffer).setUint32(4, height);
  const packed = await through(new CompressionStream("deflate"), [rows]);
  const parts = [chunk("IHDR", header), chunk("IDAT", packed), chunk("IEND", new Uint8Array())];
  return new Blob([new Uint8Array(SIGNATURE), ...parts], { type: "image/png" });
}

function* chunksOf(bytes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  for (let at = SIGNATURE.length; at + 8 <= bytes.length; ) {
    const length = view.getUint32(at);
    const type = String.fromCharCode(...bytes.subarray(at + 4, at + 8));
    yield { type, data: bytes.subarray(at + 8, at + 8 + length) };
    at += length + 12;
  }
}

function chunk(type, data) {
  const bytes = new Uint8Array(data.length + 12);
  const view = new DataView(bytes.buffer);
  view.setUint32(0, data.length);
  bytes.set([...type].map((character) => character.charCodeAt(0)), 4);
  bytes.set(data, 8);
  view.setUint32(data.length + 8, checksum(bytes.subarray(4, data.length + 8)));
  return bytes;
}

const CRC_TABLE = Uint32Array.from({ length: 256 }, (_, value) => {
  for (let bit = 0; bit < 8; bit++) value = value & 1 ? 0xedb88320 ^ (value >>> 1) : value >>> 1;
  return value;
});

function checksum(bytes) {
  let sum = 0xffffffff;
  for (const byte of bytes) sum = CRC_TABLE[(sum ^ byte) & 255] ^ (sum >>> 8);
  return (sum ^ 0xffffffff) >>> 0;
}

async function through(transform, parts) {
  const stream = new Blob(parts).stream().pipeThrough(transform);
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/** Reverts PNG's five row filters for one byte per pixel. */
function unfilter(rows, width, height) {
  const pixels = new Uint8Array(width * height);
  for (let y = 0; y < height; y++) {
    const filter = rows[y * (width + 1)];
    const source = y * (width + 1) + 1;
    const target = y * width;
    for (let x = 0; x < width; x++) {
      const left = x ? pixels[target + x - 1] : 0;
      const above = y ? pixels[target + x - width] : 0;
      const corner = x && y ? pixels[target + x - width - 1] : 0;
      pixels[target + x] = rows[source + x] + predicted(filter, left, above, corner);
    }
  }
  return pixels;
}

function predicted(filter, left, above, corner) {
  if (filter === 0) return 0;
  if (filter === 1) return left;
  if (filter === 2) return above;
  if (filter === 3) return (left + above) >> 1;
  const [a, b, c] = [Math.abs(above - corner), Math.abs(left - corner), Math.abs(left + above - 2 * corner)];
  if (a <= b && a <= c) return left;
  return b <= c ? above : corner;
}
