// Photographs decoded by the browser, upright.

import { translate } from "../shared/language.js";

const THUMBNAIL_PX = 160;

/** The photograph as an upright bitmap, as the service sees it; null if the browser cannot decode it. */
export async function decode(file) {
  try {
    return await createImageBitmap(file, { imageOrientation: "from-image" });
  } catch {
    return null;
  }
}

/** A thumbnail as a canvas, or null. */
export async function thumbnail(file) {
  const bitmap = await decode(file);
  if (!bitmap) return null;
  const scale = Math.min(1, THUMBNAIL_PX / Math.min(bitmap.width, bitmap.height));
  const canvas = document.createElement("canvas");
  canvas.width = Math.max(1, Math.round(Math.min(bitmap.width * scale, 4 * THUMBNAIL_PX)));
  canvas.height = Math.max(1, Math.round(Math.min(bitmap.height * scale, 4 * THUMBNAIL_PX)));
  canvas.getContext("2d").drawImage(bitmap, 0, 0, canvas.width, canvas.height);
  bitmap.close();
  return canvas;
}

/** A note if the display differs from what the service saw; "" otherwise. */
export function displayNote(bitmap, image) {
  const kind = image.format.toUpperCase();
  if (!bitmap) return translate("This browser cannot display {kind} files. The mask is correct; it is shown on a grey background.", { kind });
  if (bitmap.width !== image.width || bitmap.height !== image.height) {
    const size = `${bitmap.width} × ${bitmap.height} px`;
    return translate("This browser decodes the file as {size}, so only the mask is shown. The mask is correct.", { size });
  }
  if (image.bit_depth > 8) {
    return translate("{bits}-bit photograph: this browser may display it darker or brighter than it is.", { bits: image.bit_depth });
  }
  return "";
}
