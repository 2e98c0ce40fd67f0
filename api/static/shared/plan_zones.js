// The zones of an inspection plan, and its defects, on a photograph.

import { formatNumber } from "./language.js";
import { readGrey } from "./png.js";
import { areaPath, findRegions, outline } from "./regions.js";
import { strokeWithOutline } from "./viewer/photograph_canvas.js";

/** What is drawn without a plan. */
export const NO_PLAN = { zones: [], defects: [] };

const COLORS = ["#2fb8ff", "#ffd21f", "#e05cff", "#3ddc84", "#ff6fa8", "#9c8cff", "#00d1c1", "#c8e600"];
const IGNORED_COLOR = "#c3cacd";
const SEVERITY_COLORS = { accept: "#8cc85a", note: "#8cc85a", review: "#ffb02e", reject: "#ff5c28", stop: "#ff2a2a" };
const INSIDE = 1; // lowest level of a mask that is inside
const TEXT_PX = 12;
const known = new WeakMap(); // paths by zones, which never change: while one is dragged, the others are not made again
const MAX_TEXTS = 40; // more would hide the photograph
const FAR_PX = 2 ** 17; // beyond each photograph

/** The paths of a plan's zones, [{name, zone, color, outline, area}] without unreadable masks; ignored ones first, below the others. */
export async function loadZones(plan) {
  const colors = zoneColors(plan);
  const zones = Object.entries(plan.zones).map(async ([name, zone]) => {
    const paths = await pathsOf(zone).catch(() => null);
    return paths ? [{ name, zone, color: colors[name], ...paths }] : [];
  });
  return (await Promise.all(zones)).flat().sort((one, other) => Boolean(other.zone.ignored) - Boolean(one.zone.ignored));
}

/** The colours of a plan's zones by their names. */
export function zoneColors({ zones }) {
  return Object.fromEntries(Object.entries(zones).map(([name, { ignored }], index) => [name, ignored ? IGNORED_COLOR : COLORS[index % COLORS.length]]));
}

/** The outline and the area of a zone, as paths to stroke and to fill; `at` is where its name begins. */
export function pathsOf(zone) {
  if (!known.has(zone)) known.set(zone, makePaths(zone));
  return known.get(zone);
}

async function makePaths(zone) {
  if (zone.mask !== undefined) {
    const { regions, runs } = findRegions(await readMask(zone.mask), INSIDE / 255);
    const [x, y] = regions[0]?.box ?? [0, 0];
    return { outline: outline(runs), area: areaPath(runs), at: { x, y } };
  }
  const path = new Path2D();
  const { rectangle, circle, ring, polygon } = zone;
  if (rectangle) path.rect(...rectangle.corner, rectangle.width, rectangle.height);
  for (const radius of circle ? [circle.radius] : ring ? [ring.outer_radius, ring.inner_radius] : []) {
    const [x, y] = (circle ?? ring).center;
    path.moveTo(x + radius, y);
    path.arc(x, y, radius, 0, 2 * Math.PI);
  }
  if (polygon) {
    polygon.forEach(([x, y], at) => path[at ? "lineTo" : "moveTo"](x, y));
    path.closePath();
  }
  const { left, top } = boundsOf(zone);
  return { outline: path, area: path, at: { x: left, y: top } };
}

/** The box of a zone's shape; undefined for a mask, which cannot be moved. */
export function boundsOf({ rectangle, circle, ring, polygon }) {
  if (rectangle) {
    const [left, top] = rectangle.corner;
    return { left, top, right: left + rectangle.width, bottom: top + rectangle.height };
  }
  if (circle || ring) {
    const [x, y] = (circle ?? ring).center;
    const radius = circle?.radius ?? ring.outer_radius;
    return { left: x - radius, top: y - radius, right: x + radius, bottom: y + radius };
  }
  if (!polygon) return undefined;
  const [xs, ys] = [polygon.map(([x]) => x), polygon.map(([, y]) => y)];
  return { left: Math.min(...xs), top: Math.min(...ys), right: Math.max(...xs), bottom: Math.max(...ys) };
}

/** The pixels {width, height, pixels} of a zone's mask, above 0 inside, from base64. */
export async function readMask(base64) {
  return readGrey(Uint8Array.from(atob(base64), (character) => character.charCodeAt(0)));
}

/** Draws zones of `loadZones`: outlines, and names at their corners; `isFilled`: with coloured areas. Ignored ones are grey. */
export function drawZones(context, scale, zones, isFilled = false) {
  for (const { zone, color, outline: path, area } of zones) {
    if (isFilled || zone.ignored) fillArea(context, area, cutsOf(zone, zones), color, zone.ignored ? 0.22 : 0.07);
    strokeWithOutline(context, path, scale, 1.5, color);
  }
  for (const { name, color, at } of zones) drawText(context, scale, name, { x: at.x, y: at.y, color });
}

/** The areas that are cut out of a zone. */
function cutsOf({ without = [] }, zones) {
  return zones.filter(({ name }) => without.includes(name)).map(({ area }) => area);
}

function fillArea(context, area, cuts, color, opacity) {
  context.save();
  for (const cut of cuts) clipOut(context, cut);
  context.globalAlpha = opacity;
  context.fillStyle = color;
  context.fill(area, "evenodd");
  context.restore();
}

/** Draws only outside an area from now on. */
function clipOut(context, area) {
  const outside = new Path2D();
  outside.rect(0, 0, FAR_PX, FAR_PX);
  outside.addPath(area);
  context.clip(outside, "evenodd");
}

/** Draws boxes of defects {bbox, severity, text}. */
export function drawDefects(context, scale, defects) {
  for (const { bbox: [x, y, width, height], severity, text } of defects) {
    const box = new Path2D();
    box.rect(x, y, width, height);
    const color = SEVERITY_COLORS[severity];
    strokeWithOutline(context, box, scale, 1.5, color);
    if (defects.length <= MAX_TEXTS) drawText(context, scale, text, { x, y: y + height, color });
  }
}

/** The measured defects of a plan's verdict with their lengths, and the worst severity of the findings about each. */
export function measuredDefects({ findings, defects }) {
  const severities = defects.map(() => "accept");
  for (const { defect, severity } of [...findings].reverse()) if (defect !== null && defect < defects.length) severities[defect] = severity;
  return defects.map(({ bbox, length }, number) => ({ bbox, severity: severities[number], text: sizeText(length) }));
}

/** The defects about which the deciding finding is, with its measure: one, or all in its zone. */
export function decidingDefects({ findings: [finding], defects }) {
  if (!finding) return [];
  const { defect, zone, measured, severity } = finding;
  const chosen = defect === null ? defects.filter(({ zones }) => zone === null || zones.includes(zone)) : defects.slice(defect, defect + 1);
  return chosen.map(({ bbox, length }) => ({ bbox, severity, text: sizeText(defect === null ? length : (measured ?? length)) }));
}

function sizeText({ value, unit }) {
  return `${formatNumber(value, { maximumSignificantDigits: 3 })} ${unit}`;
}

/** Writes a text below a point, inside the photograph. */
function drawText(context, scale, text, { x, y, color }) {
  const px = ((window.devicePixelRatio || 1) * TEXT_PX) / scale;
  context.font = `600 ${px}px system-ui, sans-serif`;
  context.textAlign = "left";
  context.textBaseline = "top";
  const { width } = context.measureText(text);
  context.globalAlpha = 0.75;
  context.fillStyle = "#1d1d1f";
  context.fillRect(x, y, width + 0.6 * px, 1.3 * px);
  context.globalAlpha = 1;
  context.fillStyle = color;
  context.fillText(text, x + 0.3 * px, y + 0.15 * px);
}
