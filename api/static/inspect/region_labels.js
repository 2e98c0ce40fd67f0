// Labels of regions at any mask threshold; the response has labels at the model's threshold only.

/**
 * Rasterizes the labelled regions of a response.
 *
 * Returns {names, width, indices}: `indices` has 1 + the index of each pixel's label in `names`, row by row; 0 for
 * none. Returns null if the response has no labels.
 */
export function rasterizeLabels({ width, height }, { regions }) {
  const labelled = regions.filter(({ label }) => label);
  if (!labelled.length) return null;
  const names = [...new Set(labelled.map(({ label }) => label))];
  const indices = new Uint8Array(width * height);
  for (const { label, polygon, holes } of labelled) {
    for (const [y, start, end] of pixelRows([polygon, ...holes])) {
      indices.fill(1 + names.indexOf(label), y * width + start, y * width + end);
    }
  }
  return { names, width, indices };
}

/** Assigns to each region the labels of its pixels; at a low threshold a region can have several. */
export function labelRegions({ regions, runs }, labels) {
  if (!labels) return;
  const found = new Map(regions.map((region) => [region, new Set()]));
  for (const { y, start, end, region } of runs) {
    const row = y * labels.width;
    for (const index of labels.indices.subarray(row + start, row + end)) if (index) found.get(region).add(index);
  }
  for (const [region, indices] of found) {
    region.label = [...indices].sort((one, other) => one - other).map((index) => labels.names[index - 1]).join(", ");
  }
}

/** The rows [y, start, end) between contours along the edges of pixels. */
function* pixelRows(contours) {
  const crossings = new Map();
  for (const contour of contours) {
    contour.forEach(([x, from], at) => {
      const to = contour[(at + 1) % contour.length][1]; // the same as `from` along a horizontal edge
      for (let y = Math.min(from, to); y < Math.max(from, to); y++) {
        if (!crossings.has(y)) crossings.set(y, []);
        crossings.get(y).push(x);
      }
    });
  }
  for (const [y, found] of crossings) {
    found.sort((one, other) => one - other);
    for (let at = 0; at + 1 < found.length; at += 2) yield [y, found[at], found[at + 1]];
  }
}
