// The zones of the plan: a list, and the fields of the selected one.

import { byId, createElement } from "../shared/dom.js";
import { translate } from "../shared/language.js";
import { boundsOf } from "../shared/plan_zones.js";
import { button, choiceField, labelled, numberField, replaceForm, textField, tickField } from "./fields.js";
import { allowedDefects, consequences, fixedRuleItem, newRule, ruleItems } from "./rule_fields.js";
import { shapeOf } from "./zone_shapes.js";

export class ZonePanel {
  /**
   * Calls `onSelect(name)`; for the selected zone `onRename(newName)`, `onCopy()`, `onDelete()`, and `onZone(change)` with a
   * function from the present zone to another.
   */
  constructor(actions) {
    this.actions = actions;
  }

  /** Shows the zones of a plan for a model; `colors` are those of the zones by name. */
  show(plan, selected, colors, model) {
    const items = Object.entries(plan.zones).map(([name, zone], index) => {
      const item = createElement("li", "zone", this.#title(name, zone, index, name === selected, colors[name]));
      if (name === selected) item.append(this.#fields(plan, name, zone, model));
      return item;
    });
    replaceForm(byId("zones"), ...items);
    byId("no-zones").hidden = items.length > 0;
  }

  #title(name, zone, index, isSelected, color) {
    const title = button(`zone-${index}`, name, () => this.actions.onSelect(isSelected ? null : name), "zone-title");
    title.style.setProperty("--swatch", color);
    title.setAttribute("aria-expanded", isSelected);
    const count = zone.rules?.length ?? 0;
    const about = zone.ignored ? translate("ignored") : count ? translate("rules: {count}", { count }) : translate("no rules");
    title.append(createElement("span", "hint", about));
    return title;
  }

  #fields(plan, name, zone, model) {
    const { onRename, onCopy, onDelete, onZone } = this.actions;
    const check = (text) => (text !== name && Object.hasOwn(plan.zones, text) ? translate("Another zone has this name.") : "");
    const fields = [
      labelled(translate("Name"), textField("zone-name", translate("Name"), name, onRename, check)),
      tickField("zone-ignored", translate("Ignored: defects that are completely inside, and in no zone with rules, are accepted"), Boolean(zone.ignored), (isIgnored) => onZone((present) => withIgnored(present, isIgnored))),
    ];
    if (!zone.ignored) fields.push(...this.#ruleFields(plan, zone, model, onZone));
    fields.push(placeFields(plan, zone, onZone), ...this.#cutFields(plan, name, zone, onZone));
    fields.push(createElement("div", "buttons", button("zone-copy", translate("Copy"), onCopy), button("zone-delete", translate("Delete"), onDelete)));
    return createElement("div", "zone-fields", ...fields);
  }

  #ruleFields(plan, zone, model, change) {
    const rules = zone.rules ?? [];
    const setRules = (changeRules) => change((present) => ({ ...present, rules: changeRules(present.rules ?? []) }));
    const items = ruleItems("zone", rules, { plan, model, onChange: setRules });
    const otherwise = choiceField("zone-otherwise", translate("Other defects"), consequences(), zone.otherwise ?? "reject", (then) => change((present) => ({ ...present, otherwise: then })));
    const { allowed, isComplete, namesAny } = allowedDefects(rules);
    const within = allowed.map((name) => fixedRuleItem(translate("{defect} within all limits", { defect: name ?? translate("any defect") }), translate("accept")));
    const rest = fixedRuleItem(namesAny ? translate("Any other defect") : translate("Any defect"), otherwise);
    return [
      createElement("ol", "rules", ...items, ...within, ...(isComplete ? [] : [rest])),
      button("zone-new-rule", translate("New rule"), () => setRules((present) => [...present, newRule(plan, false)])),
    ];
  }

  #cutFields(plan, name, zone, change) {
    const others = Object.keys(plan.zones).filter((other) => other !== name);
    if (!others.length) return [];
    const ticks = others.map((other, index) => tickField(`zone-cut-${index}`, other, Boolean(zone.without?.includes(other)), (isCut) => {
      change(({ without = [], ...rest }) => ({ ...rest, without: isCut ? [...without, other] : without.filter((cut) => cut !== other) }));
    }));
    return [folded("zone-cuts", translate("Cut out other zones"), Boolean(zone.without?.length), ...ticks)];
  }
}

/** The places of a zone as numbers, for those who do not draw. */
function placeFields(plan, zone, change) {
  const shape = shapeOf(zone);
  const title = translate("Place and size, px");
  if (shape === "mask") return folded("zone-place", title, false, createElement("p", "hint", translate("This zone is painted: use brush and eraser.")));
  if (shape === "polygon") return folded("zone-place", title, false, cornersField(zone, plan.photograph, change));
  const { width, height } = plan.photograph;
  const withNumber = (name, number) => {
    let problem = "";
    change((present) => {
      const changed = { ...present, [shape]: shapeWith({ ...numbersOf(present[shape]), [name]: number }) };
      if (isInside(changed, plan.photograph)) return changed;
      problem = translate("Expected a place in the photograph of {size} px.", { size: `${width} × ${height}` });
      return present;
    });
    return problem;
  };
  const fields = Object.entries(numbersOf(zone[shape])).map(([name, value]) => {
    const field = numberField(`zone-${name}`, NUMBER_NAMES[name], value, (number) => withNumber(name, number));
    return labelled(NUMBER_NAMES[name], field);
  });
  return folded("zone-place", title, false, createElement("div", "places", ...fields));
}

const NUMBER_NAMES = {
  x: translate("x"),
  y: translate("y"),
  width: translate("Width"),
  height: translate("Height"),
  radius: translate("Radius"),
  inner_radius: translate("Inner radius"),
  outer_radius: translate("Outer radius"),
};

function numbersOf({ corner, center, ...others }) {
  const [x, y] = corner ?? center;
  return { x, y, ...others };
}

function shapeWith({ x, y, ...others }) {
  return { [others.width === undefined ? "center" : "corner"]: [x, y], ...others };
}

function cornersField(zone, size, change) {
  const area = createElement("textarea", "");
  Object.assign(area, { id: "zone-corners", rows: 4, value: zone.polygon.map((corner) => corner.join(", ")).join("\n") });
  area.setAttribute("aria-label", translate("Corners, one in each line: x, y"));
  area.addEventListener("input", () => area.setCustomValidity(""));
  area.addEventListener("change", () => {
    const polygon = area.value.trim().split("\n").map((line) => line.split(",").map((text) => (text.trim() ? Number(text) : NaN)));
    const isComplete = polygon.length > 2 && polygon.every((corner) => corner.length === 2 && corner.every(Number.isFinite));
    const isValid = isComplete && isInside({ polygon }, size);
    area.setCustomValidity(isValid ? "" : translate("Expected at least three corners in the photograph, one in each line: x, y"));
    if (area.reportValidity()) change((present) => ({ ...present, polygon }));
  });
  return area;
}

function isInside(zone, { width, height }) {
  const { left, top, right, bottom } = boundsOf(zone);
  return left >= 0 && top >= 0 && right <= width && bottom <= height && right > left && bottom > top;
}

function withIgnored(zone, isIgnored) {
  const { ignored, rules, otherwise, ...shape } = zone;
  return isIgnored ? { ...shape, ignored: true } : shape;
}

function folded(id, title, isOpen, ...children) {
  const was = byId(id)?.open;
  const details = createElement("details", "", createElement("summary", "", title), ...children);
  Object.assign(details, { id, open: was ?? isOpen });
  return details;
}
