// Labels of regions at any mask threshold; the response has labels at the model's threshold only.

import { thresholdLevel } from "../shared/regions.js";

/**
 * Rasterizes the labelled regions of a response.
 *
 * Each polygon is an outer contour through pixels of its region. Enclosed pixels belong to the region too, except in
 * holes: pixels of a smaller region inside, and pixels below the threshold.
 *
 * Returns {names, width, indices}: `indices` has 1 + the index of each pixel's label in `names`, row by row; 0 for
 * none. Returns null if the response has no labels.
 */
export function rasterizeLabels({ width, height, pixels }, { mask, regions }) {
  const labelled = regions.filter(({ label }) => label);
  if (!labelled.length) return null;
  const names = [...new Set(labelled.map(({ label }) => label))];
  const indices = new Uint8Array(width * height);
  const level = thresholdLevel(mask.threshold);
  const largestFirst = [...labelled].sort((one, other) => boxArea(other) - boxArea(one));
  for (const { label, polygon } of largestFirst) {
    for (const [y, start, end] of interiorRows(polygon)) {
      for (let at = y * width + start; at <= y * width + end; at++) {
        if (pixels[at] >= level) indices[at] = 1 + names.indexOf(label);
      }
    }
  }
  for (const { label, polygon } of labelled) {
    for (const [x, y] of boundaryPixels(polygon)) indices[y * width + x] = 1 + names.indexOf(label);
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

function boxArea({ bbox: [, , width, height] }) {
  return width * height;
}

function edgesOf(polygon) {
  return polygon.map((from, at) => [from, polygon[(at + 1) % polygon.length]]);
}

/** The rows [y, first x, last x] inside a polygon; its boundary may be missing. */
function* interiorRows(polygon) {
  const crossings = new Map();
  for (const side of edgesOf(polygon)) {
    const [[left, top], [right, bottom]] = [...side].sort((one, other) => one[1] - other[1]);
    for (let y = top; y < bottom; y++) {
      if (!crossings.has(y)) crossings.set(y, []);
      crossings.get(y).push(Math.round(left + ((right - left) * (y - top)) / (bottom - top)));
    }
  }
  for (const [y, found] of crossings) {
    found.sort((one, other) => one - other);
    for (let at = 0; at + 1 < found.length; at += 2) yield [y, found[at], found[at + 1]];
  }
}

/** The pixels on a polygon's boundary. */
function* boundaryPixels(polygon) {
  for (const [[fromX, fromY], [toX, toY]] of edgesOf(polygon)) {
    const steps = Math.max(Math.abs(toX - fromX), Math.abs(toY - fromY), 1);
    for (let step = 0; step <= steps; step++) {
      yield [Math.round(fromX + ((toX - fromX) * step) / steps), Math.round(fromY + ((toY - fromY) * step) / steps)];
    }
  }
}
