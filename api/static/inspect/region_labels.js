// Regions' labels: those of the answer belong to its own threshold, at another one the regions are others.

import { thresholdLevel } from "../shared/regions.js";

/**
 * Draws the labelled regions of an answer, so that each pixel knows its label.
 *
 * A polygon is an outer contour and runs along pixels of its region. What it encloses is the region's as well, but for
 * what lies in a hole: pixels of a region in there, which is the smaller one, or such as do not reach the threshold.
 *
 * Returns {names, width, places}: places, row by row, is 1 + the place of a pixel's label among the names, 0 for none.
 * Without labels in the answer it returns null.
 */
export function rasterizeLabels({ width, height, pixels }, { mask, regions }) {
  const labelled = regions.filter(({ label }) => label);
  if (!labelled.length) return null;
  const names = [...new Set(labelled.map(({ label }) => label))];
  const places = new Uint8Array(width * height);
  const level = thresholdLevel(mask.threshold);
  const largestFirst = [...labelled].sort((one, other) => boxArea(other) - boxArea(one));
  for (const { label, polygon } of largestFirst) {
    for (const [y, start, end] of interiorRows(polygon)) {
      for (let at = y * width + start; at <= y * width + end; at++) {
        if (pixels[at] >= level) places[at] = 1 + names.indexOf(label);
      }
    }
  }
  for (const { label, polygon } of labelled) {
    for (const [x, y] of boundaryPixels(polygon)) places[y * width + x] = 1 + names.indexOf(label);
  }
  return { names, width, places };
}

/** Gives regions the labels of their pixels; at a low threshold one may have several. */
export function labelRegions({ regions, runs }, labels) {
  if (!labels) return;
  const found = new Map(regions.map((region) => [region, new Set()]));
  for (const { y, start, end, region } of runs) {
    const row = y * labels.width;
    for (const place of labels.places.subarray(row + start, row + end)) if (place) found.get(region).add(place);
  }
  for (const [region, places] of found) {
    region.label = [...places].sort((one, other) => one - other).map((place) => labels.names[place - 1]).join(", ");
  }
}

function boxArea({ bbox: [, , width, height] }) {
  return width * height;
}

function edgesOf(polygon) {
  return polygon.map((from, at) => [from, polygon[(at + 1) % polygon.length]]);
}

/** The rows [y, first x, last x] between a polygon's sides; those that it runs along may be missing. */
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

/** The pixels that a polygon runs along. */
function* boundaryPixels(polygon) {
  for (const [[fromX, fromY], [toX, toY]] of edgesOf(polygon)) {
    const steps = Math.max(Math.abs(toX - fromX), Math.abs(toY - fromY), 1);
    for (let step = 0; step <= steps; step++) {
      yield [Math.round(fromX + ((toX - fromX) * step) / steps), Math.round(fromY + ((toY - fromY) * step) / steps)];
    }
  }
}
