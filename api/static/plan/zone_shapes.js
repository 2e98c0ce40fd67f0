// Moving and resizing the shapes of zones. Points {x, y} are px of the photograph, rounded to whole ones.

import { boundsOf } from "../shared/plan_zones.js";

const MIN_SIDE = 2; // px
const NEW_INNER_SHARE = 0.6; // of the outer radius of a ring
const SHAPES = ["rectangle", "polygon", "circle", "ring", "mask"];

/** The name of the shape of a zone. */
export function shapeOf(zone) {
  return SHAPES.find((name) => zone[name] !== undefined);
}

/** The point of the photograph of `size` {width, height} that is nearest to `point`. */
export function clampPoint({ x, y }, { width, height }) {
  return { x: clamp(Math.round(x), 0, width), y: clamp(Math.round(y), 0, height) };
}

/** A zone moved by some px, as far as it stays in the photograph; masks cannot be moved. */
export function moved(zone, dx, dy, { width, height }) {
  const bounds = boundsOf(zone);
  if (!bounds) return zone;
  const x = clamp(Math.round(dx), -bounds.left, width - bounds.right);
  const y = clamp(Math.round(dy), -bounds.top, height - bounds.bottom);
  const shift = ([left, top]) => [left + x, top + y];
  const { rectangle, circle, ring, polygon } = zone;
  if (rectangle) return { ...zone, rectangle: { ...rectangle, corner: shift(rectangle.corner) } };
  if (circle) return { ...zone, circle: { ...circle, center: shift(circle.center) } };
  if (ring) return { ...zone, ring: { ...ring, center: shift(ring.center) } };
  return { ...zone, polygon: polygon.map(shift) };
}

/** The rectangle between two points, or null if it is too small. */
export function rectangleBetween(one, other) {
  const [left, top] = [Math.min(one.x, other.x), Math.min(one.y, other.y)];
  const [width, height] = [Math.abs(one.x - other.x), Math.abs(one.y - other.y)];
  return width < MIN_SIDE || height < MIN_SIDE ? null : { rectangle: { corner: [left, top], width, height } };
}

/** The circle around a point through another one, inside the photograph, or null if it is too small. */
export function circleThrough(center, point, size) {
  const radius = radiusThrough(center, point, size);
  return radius < MIN_SIDE ? null : { circle: { center: [center.x, center.y], radius } };
}

/** As `circleThrough`, with a smaller circle cut out. */
export function ringThrough(center, point, size) {
  const outer = radiusThrough(center, point, size);
  const inner = Math.round(outer * NEW_INNER_SHARE);
  return outer < 2 * MIN_SIDE ? null : { ring: { center: [center.x, center.y], inner_radius: inner, outer_radius: outer } };
}

/** The polygon with corners {x, y}, without those that repeat, or null if there are too few. */
export function polygonOf(corners, size) {
  const points = corners.map((corner) => clampPoint(corner, size)).map(({ x, y }) => [x, y]);
  const unique = points.filter(([x, y], at) => points.findIndex(([left, top]) => left === x && top === y) === at);
  return unique.length < 3 ? null : { polygon: unique };
}

/**
 * The handles of a zone: {x, y, drag(point) → zone}; `corner` is the number of a polygon's corner. `isAdded` handles are
 * between two corners and add one.
 */
export function handlesOf(zone, size) {
  const { rectangle, circle, ring, polygon } = zone;
  if (rectangle) return rectangleHandles(zone, rectangle);
  if (circle) return [radiusHandle(zone, "circle", "radius", size)];
  if (ring) return ["outer_radius", "inner_radius"].map((name) => radiusHandle(zone, "ring", name, size));
  return polygon ? polygonHandles(zone, polygon) : [];
}

/** A polygon without a corner, if three remain; others unchanged. */
export function withoutCorner(zone, corner) {
  if (zone.polygon.length <= 3) return zone;
  return { ...zone, polygon: zone.polygon.filter((_, at) => at !== corner) };
}

function rectangleHandles(zone, { corner: [left, top], width, height }) {
  const [xs, ys] = [[left, left + width], [top, top + height]];
  return [0, 1].flatMap((right) => [0, 1].map((low) => {
    const opposite = { x: xs[1 - right], y: ys[1 - low] };
    return { x: xs[right], y: ys[low], drag: (point) => ({ ...zone, ...rectangleBetween(opposite, point) }) };
  }));
}

function radiusHandle(zone, shape, name, size) {
  const [x, y] = zone[shape].center;
  const drag = (point) => {
    const radius = radiusThrough({ x, y }, point, size);
    const changed = { ...zone[shape], [name]: radius };
    const isValid = radius >= MIN_SIDE && (shape === "circle" || changed.inner_radius < changed.outer_radius);
    return isValid ? { ...zone, [shape]: changed } : zone;
  };
  return { x: x + zone[shape][name], y, drag };
}

function polygonHandles(zone, polygon) {
  const replace = (at, count, { x, y }) => ({ ...zone, polygon: polygon.toSpliced(at, count, [x, y]) });
  const corners = polygon.map(([x, y], corner) => ({ x, y, corner, drag: (point) => replace(corner, 1, point) }));
  const between = polygon.map(([x, y], at) => {
    const [nextX, nextY] = polygon[(at + 1) % polygon.length];
    return { x: (x + nextX) / 2, y: (y + nextY) / 2, corner: at + 1, isAdded: true, drag: (point) => replace(at + 1, 0, point) };
  });
  return [...corners, ...between];
}

function radiusThrough({ x, y }, point, { width, height }) {
  return Math.min(Math.round(Math.hypot(point.x - x, point.y - y)), x, y, width - x, height - y);
}

function clamp(value, low, high) {
  return Math.min(Math.max(value, low), high);
}
