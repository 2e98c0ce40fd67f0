// Changes of a plan. A plan is an object as the service sends it; a change returns another one.

/** The plan with a zone added or replaced. */
export function withZone(plan, name, zone) {
  return { ...plan, zones: { ...plan.zones, [name]: zone } };
}

/** The plan without a zone, which is no longer cut out of others. */
export function withoutZone(plan, name) {
  return mapZones(plan, (other, zone) => (other === name ? [] : [[other, withCuts(zone, (cut) => (cut === name ? [] : [cut]))]]));
}

/** The plan with a zone renamed; its place among the others stays. */
export function renamed(plan, name, newName) {
  const rename = (other) => (other === name ? newName : other);
  return mapZones(plan, (other, zone) => [[rename(other), withCuts(zone, (cut) => [rename(cut)])]]);
}

/** A name that no zone has, which begins with `base`. */
export function freeName(plan, base) {
  const isFree = (name) => !Object.hasOwn(plan.zones, name);
  if (isFree(base)) return base;
  const root = base.replace(/ \d+$/, "");
  for (let number = 2; ; number++) if (isFree(`${root} ${number}`)) return `${root} ${number}`;
}

/** The plan with another scale, {mm_per_px} or {known_distance}; with {} none. */
export function withScale(plan, scale) {
  const { width, height } = plan.photograph;
  return { ...plan, photograph: { width, height, ...scale } };
}

/** Millimetres per px of a plan; null without a scale, or with a perspective, which has several. */
export function mmPerPx({ photograph: { mm_per_px: given, known_distance: known } }) {
  if (given) return given;
  if (!known) return null;
  const [[x, y], [otherX, otherY]] = known.points;
  return known.mm / Math.hypot(otherX - x, otherY - y);
}

/** Whether limits in millimetres are possible. */
export function hasScale({ photograph }) {
  return Boolean(photograph.mm_per_px || photograph.known_distance || photograph.perspective);
}

/** The number and the unit of a length, an area or a share: `2 mm` → {number, unit}. */
export function splitQuantity(text) {
  const [number, unit] = text.split(" ");
  return { number: Number(number), unit: unit.replace("2", "²") };
}

/** A quantity in another unit; null if the scale of the plan does not say how many that are. */
export function convertQuantity(text, unit, plan) {
  const { number, unit: before } = splitQuantity(text);
  const scale = mmPerPx(plan);
  const isArea = before.endsWith("²");
  if (before === unit) return text;
  if (!scale || before === "%" || unit === "%" || isArea !== unit.endsWith("²")) return null;
  const factor = (before.startsWith("px") ? scale : 1 / scale) ** (isArea ? 2 : 1);
  return quantityText(Number((number * factor).toPrecision(6)), unit);
}

/** A quantity as text; null if the number is no limit. */
export function quantityText(number, unit) {
  const rounded = Number(number.toFixed(6));
  return rounded > 0 && Number.isFinite(rounded) ? `${rounded} ${unit}` : null;
}

function mapZones(plan, entriesOf) {
  return { ...plan, zones: Object.fromEntries(Object.entries(plan.zones).flatMap(([name, zone]) => entriesOf(name, zone))) };
}

function withCuts(zone, cutsOf) {
  return zone.without ? { ...zone, without: zone.without.flatMap(cutsOf) } : zone;
}
