// Mask scores → mask, connected regions and their outlines.

/** The lowest stored value (score × 255, rounded) that reaches `threshold`. */
function thresholdLevel(threshold) {
  return Math.ceil(threshold * 255 - 1e-9);
}

/**
 * Finds the 8-connected regions of the pixels that reach `threshold`.
 *
 * Returns {regions, runs}: regions {number, box: [x, y, w, h], area, score}, highest score first; runs {y, start, end,
 * region}, row by row: the mask's pixels start ≤ x < end of row y.
 */
export function findRegions({ width, height, pixels }, threshold) {
  const level = thresholdLevel(threshold);
  const runs = [];
  const parents = [];
  let above = 0; // first run of the row above
  for (let y = 0; y < height; y++) {
    const first = runs.length;
    collectRuns(pixels, y, width, level, runs, parents);
    joinRows(runs, parents, above, first);
    above = first;
  }
  return { regions: summarise(runs, parents), runs };
}

/** The mask as bytes: 255 = defect, 0 = good. */
export function paintMask(width, height, runs) {
  const mask = new Uint8Array(width * height);
  for (const { y, start, end } of runs) mask.fill(255, y * width + start, y * width + end);
  return mask;
}

/** The run that contains a pixel, or undefined. */
export function runAt(runs, x, y) {
  let [low, high] = [0, runs.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (runs[middle].y < y || (runs[middle].y === y && runs[middle].end <= x)) low = middle + 1;
    else high = middle;
  }
  const run = runs[low];
  return run && run.y === y && run.start <= x ? run : undefined;
}

/** The outline of `runs` as a path along pixel edges. */
export function outline(runs) {
  const path = new Path2D();
  let above = [];
  for (let at = 0; at < runs.length; ) {
    const y = runs[at].y;
    const row = [];
    for (; at < runs.length && runs[at].y === y; at++) row.push(runs[at]);
    if (above.length && above[0].y !== y - 1) {
      addEdges(path, above[0].y + 1, above, []);
      above = [];
    }
    addEdges(path, y, above, row);
    for (const { start, end } of row) for (const x of [start, end]) addLine(path, x, y, x, y + 1);
    above = row;
  }
  if (above.length) addEdges(path, above[0].y + 1, above, []);
  return path;
}

/** A path of all pixels of runs, to be filled. */
export function areaPath(runs) {
  const path = new Path2D();
  for (const { y, start, end } of runs) path.rect(start, y, end - start, 1);
  return path;
}

function collectRuns(pixels, y, width, level, runs, parents) {
  const row = y * width;
  for (let x = 0; x < width; x++) {
    if (pixels[row + x] < level) continue;
    const start = x;
    let score = 0;
    for (; x < width && pixels[row + x] >= level; x++) score = Math.max(score, pixels[row + x]);
    parents.push(runs.length);
    runs.push({ y, start, end: x, score, region: undefined });
  }
}

function joinRows(runs, parents, above, first) {
  let upper = above;
  for (let lower = first; lower < runs.length; lower++) {
    while (upper < first && runs[upper].end < runs[lower].start) upper++;
    for (let at = upper; at < first && runs[at].start <= runs[lower].end; at++) {
      parents[rootOf(parents, at)] = rootOf(parents, lower);
    }
  }
}

function rootOf(parents, run) {
  while (parents[run] !== run) {
    parents[run] = parents[parents[run]];
    run = parents[run];
  }
  return run;
}

function summarise(runs, parents) {
  const found = new Map();
  runs.forEach((run, index) => {
    const root = rootOf(parents, index);
    let region = found.get(root);
    if (!region) {
      region = { left: run.start, top: run.y, right: run.end, bottom: run.y + 1, area: 0, score: 0 };
      found.set(root, region);
    }
    region.left = Math.min(region.left, run.start);
    region.right = Math.max(region.right, run.end);
    region.bottom = run.y + 1;
    region.area += run.end - run.start;
    region.score = Math.max(region.score, run.score);
    run.region = region;
  });
  const sorted = [...found.values()].sort(
    (a, b) =>
      b.score - a.score || b.area - a.area || a.left - b.left || a.top - b.top || a.right - b.right || a.bottom - b.bottom,
  );
  sorted.forEach((region, index) => {
    region.number = index + 1;
    region.box = [region.left, region.top, region.right - region.left, region.bottom - region.top];
    region.score /= 255;
  });
  return sorted;
}

/** Adds the horizontal edges between two rows, where exactly one of them is in the mask. */
function addEdges(path, y, upper, lower) {
  const ends = [...upper, ...lower].flatMap(({ start, end }) => [start, end]).sort((a, b) => a - b);
  for (let at = 0; at + 1 < ends.length; at += 2) {
    if (ends[at] < ends[at + 1]) addLine(path, ends[at], y, ends[at + 1], y);
  }
}

function addLine(path, fromX, fromY, toX, toY) {
  path.moveTo(fromX, fromY);
  path.lineTo(toX, toY);
}
