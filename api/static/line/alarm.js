// The full-screen alarm: a part was not inspected, or the screen has no current data.

import { byId, setText } from "../shared/dom.js";
import { translate, translateCount } from "../shared/language.js";
import { formatDuration } from "./clock.js";
import { stationName } from "./format.js";

const SEEN_NAME = "segdec.line.acknowledged";
const MIN_ALARM_S = 10; // minimum display time, even if the station inspects again at once
const TITLES = {
  uninspected: translate("NOT INSPECTED"),
  lost: translate("NO CONNECTION"),
  unread: translate("NO DATA"),
};

/** Uninspected photographs acknowledged on this screen during the current shift; survives a reload. */
class Acknowledged {
  constructor() {
    this.known = JSON.parse(sessionStorage.getItem(SEEN_NAME) ?? "{}");
  }

  /** The acknowledged {count, uninspected} of a shift: their number, and the last one of each station. */
  of(shift) {
    return this.known.shift === shift ? this.known : { count: 0, uninspected: {} };
  }

  add(shift, count, uninspected) {
    const last = Object.fromEntries(uninspected.map((part) => [part.station, part.at]));
    this.known = { shift, count, uninspected: last };
    sessionStorage.setItem(SEEN_NAME, JSON.stringify(this.known));
  }
}

export class Alarm {
  /** Calls `onKey()` when the user wants to enter a key. */
  constructor(onKey) {
    this.acknowledged = new Acknowledged();
    this.title = document.title;
    this.kind = null;
    this.shown = null;
    for (const id of ["alarm-acknowledge", "banner-acknowledge"]) byId(id).addEventListener("click", () => this.acknowledge());
    byId("alarm-key").addEventListener("click", onKey);
  }

  /** Acknowledges the displayed photographs. */
  acknowledge() {
    if (!this.status) return;
    const { shift, number } = shiftOf(this.status);
    this.acknowledged.add(shift, number, this.status.uninspected);
    this.tick(this.status, this.clock, this.trouble);
  }

  /**
   * Updates the alarm from the last response `status`, null before the first, and from `trouble` {since, message,
   * needsKey} if responses are missing.
   */
  tick(status, clock, trouble) {
    Object.assign(this, { status, clock, trouble });
    const { shift, number } = shiftOf(status);
    const acknowledged = this.acknowledged.of(shift);
    const open = Math.max(number - acknowledged.count, 0);
    const active = status ? this.active(acknowledged) : null;
    this.kind = trouble ? "lost" : active ? "uninspected" : status?.unavailable ? "unread" : null;
    byId("alarm").hidden = !this.kind;
    byId("banner").hidden = Boolean(this.kind) || !open;
    document.body.dataset.alarm = this.kind ?? "";
    const title = this.kind ? `${TITLES[this.kind]} – ${this.title}` : open ? `${notInspected(open)} – ${this.title}` : this.title;
    if (document.title !== title) document.title = title;
    if (this.kind) this.fill(active, open);
    else if (open) this.fillBanner(open);
  }

  /** The newest unacknowledged photograph that is recent, or whose station has not inspected since. */
  active(acknowledged) {
    const fresh = this.status.uninspected.filter((part) => acknowledged.uninspected[part.station] !== part.at);
    return fresh.find((part) => !part.followed || this.clock.since(part.at) < MIN_ALARM_S) ?? null;
  }

  fill(part, open) {
    const { kind, trouble } = this;
    byId("alarm").dataset.kind = kind;
    setText(byId("alarm-word"), TITLES[kind]);
    byId("alarm-acknowledge").hidden = kind !== "uninspected";
    byId("alarm-key").hidden = !trouble?.needsKey;
    const texts = kind === "uninspected" ? this.ofUninspected(part, open) : this.ofTrouble(open);
    for (const [name, text] of Object.entries(texts)) setText(byId(`alarm-${name}`), text);
  }

  ofUninspected(part, open) {
    const which = part.part_id === null ? "" : translate("Part {part}", { part: part.part_id });
    const duration = formatDuration(this.clock.since(part.at));
    const age = translate("{duration} ago, at {time}", { duration, time: this.clock.timeWithSeconds(part.at) });
    const action = translateCount(
      open,
      "Hold the part: its condition is unknown.",
      "Hold the parts: {count} were not inspected. This is the latest one.",
    );
    return { part: which, station: stationName(part.station), do: action, why: part.detail, age };
  }

  ofTrouble(open) {
    const { trouble, clock } = this;
    const count = translateCount(
      open,
      "Before that, {count} was not inspected.",
      "Before that, {count} were not inspected.",
    );
    const check = translate("Unknown whether parts are being inspected: check the line.");
    return {
      part: trouble ? translate("since {time}", { time: clock.timeWithSeconds(trouble.since) }) : "",
      station: "",
      do: open ? `${check} ${count}` : check,
      why: trouble ? trouble.message : this.status.unavailable,
      age: trouble ? translate("for {duration}", { duration: formatDuration((clock.now - trouble.since) / 1000) }) : "",
    };
  }

  fillBanner(open) {
    const last = this.status.uninspected[0];
    setText(byId("banner-text"), translateCount(open, "{count} NOT INSPECTED", "{count} NOT INSPECTED"));
    if (!last) return setText(byId("banner-last"), "");
    const where = `${stationName(last.station)}, ${this.clock.time(last.at)}`;
    const text = last.part_id
      ? translate("Last: part {part}, {where}. {reason}", { part: last.part_id, where, reason: last.detail })
      : translate("Last: {where}. {reason}", { where, reason: last.detail });
    return setText(byId("banner-last"), text);
  }
}

function notInspected(count) {
  return translateCount(count, "{count} not inspected", "{count} not inspected");
}

/** The key of shift and station of a response, and its number of uninspected photographs. */
function shiftOf(status) {
  if (!status) return { shift: "", number: 0 };
  const { shift, uninspected, station } = status;
  return { shift: `${shift?.begin ?? "unread"} ${JSON.stringify(station)}`, number: shift?.not_inspected ?? uninspected.length };
}
