// Photographs as the browser can draw them: upright, or not at all.

const THUMBNAIL_PX = 160;

/** The photograph as a bitmap, turned upright as the service does; null when the browser cannot draw it. */
export async function decode(file) {
  try {
    return await createImageBitmap(file, { imageOrientation: "from-image" });
  } catch {
    return null;
  }
}

/** A small canvas with the photograph, or null. */
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

/** What to say about how the photograph is shown; "" when it is as the service saw it. */
export function displayNote(bitmap, image) {
  const kind = image.format.toUpperCase();
  if (!bitmap) return `This browser cannot show ${kind} files. The mask lies on a grey ground; it is right.`;
  if (bitmap.width !== image.width || bitmap.height !== image.height) {
    const size = `${bitmap.width} × ${bitmap.height} px`;
    return `This browser reads the file as ${size}, so it is not shown. The mask is right.`;
  }
  if (image.bit_depth > 8) {
    return `${image.bit_depth}-bit photograph: this browser may show it darker or lighter than it is.`;
  }
  return "";
}
