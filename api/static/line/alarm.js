// What is louder than all else: parts of which nothing is known, and a screen that does not know.

import { byId } from "../shared/dom.js";
import { formatDuration } from "./clock.js";
import { formatCount, stationName, part, setText } from "./format.js";

const SEEN_NAME = "segdec.line.seen";
const MIN_ALARM_S = 10; // for which a miss fills the screen, even if its station inspects again at once
const WORDS = { missed: "NOT INSPECTED", failure: "NO CONNECTION", unread: "NO DATA" };

/** Misses that somebody has seen on this screen, until the shift ends; they survive a reload. */
class Acknowledged {
  constructor() {
    this.known = JSON.parse(sessionStorage.getItem(SEEN_NAME) ?? "{}");
  }

  /** What was seen of a shift, as {count, misses}: how many, and the last one of each station. */
  of(shift) {
    return this.known.shift === shift ? this.known : { count: 0, misses: {} };
  }

  add(shift, count, misses) {
    const last = Object.fromEntries(misses.map((miss) => [miss.station, miss.missed_at]));
    this.known = { shift, count, misses: last };
    sessionStorage.setItem(SEEN_NAME, JSON.stringify(this.known));
  }
}

export class Alarm {
  /** `onKey()` is told that somebody wants to give a key. */
  constructor(onKey) {
    this.seen = new Acknowledged();
    this.title = document.title;
    this.kind = null;
    this.shown = null;
    for (const id of ["alarm-seen", "banner-seen"]) byId(id).addEventListener("click", () => this.see());
    byId("alarm-key").addEventListener("click", onKey);
  }

  /** Somebody has seen what is shown. */
  see() {
    if (!this.status) return;
    const { shift, number } = shiftOf(this.status);
    this.seen.add(shift, number, this.status.misses);
    this.tick(this.status, this.clock, this.trouble);
  }

  /**
   * Shows what has to be shown now: of the last answer `status`, null before the first, and of `trouble`, {since,
   * words, needsKey} where none comes any more.
   */
  tick(status, clock, trouble) {
    Object.assign(this, { status, clock, trouble });
    const { shift, number } = shiftOf(status);
    const seen = this.seen.of(shift);
    const unseen = Math.max(number - seen.count, 0);
    const standing = status ? this.standing(seen) : null;
    this.kind = trouble ? "lost" : standing ? "missed" : status?.unavailable ? "unread" : null;
    byId("alarm").hidden = !this.kind;
    byId("banner").hidden = Boolean(this.kind) || !unseen;
    document.body.dataset.alarm = this.kind ?? "";
    const title = this.kind ? `${WORDS[this.kind]} – ${this.title}` : unseen ? `${unseen} not inspected – ${this.title}` : this.title;
    if (document.title !== title) document.title = title;
    if (this.kind) this.fill(standing, unseen);
    else if (unseen) this.fillBanner(unseen);
  }

  /** The newest miss that nobody has seen, and that is new or that no inspection of its station has followed. */
  standing(seen) {
    const fresh = this.status.misses.filter((miss) => seen.misses[miss.station] !== miss.missed_at);
    return fresh.find((miss) => !miss.followed || this.clock.since(miss.missed_at) < MIN_ALARM_S) ?? null;
  }

  fill(miss, unseen) {
    const { kind, trouble } = this;
    byId("alarm").dataset.kind = kind;
    setText(byId("alarm-word"), WORDS[kind]);
    byId("alarm-seen").hidden = kind !== "missed";
    byId("alarm-key").hidden = !trouble?.needsKey;
    const words = kind === "missed" ? this.ofMiss(miss, unseen) : this.ofTrouble(unseen);
    for (const [name, text] of Object.entries(words)) setText(byId(`alarm-${name}`), text);
  }

  ofMiss(miss, unseen) {
    const which = miss.part_id === null ? "" : `Part ${miss.part_id}`;
    const age = `${formatDuration(this.clock.since(miss.missed_at))} ago, at ${this.clock.timeWithSeconds(miss.missed_at)}`;
    const hold = "Hold the part: nothing is known about it.";
    const several = `Hold the parts: ${formatCount(unseen)} were not inspected, this is the last one.`;
    return { part: which, station: stationName(miss.station), do: unseen > 1 ? several : hold, why: miss.detail, age };
  }

  ofTrouble(unseen) {
    const { trouble, clock } = this;
    const missed = unseen ? ` ${formatCount(unseen)} were not inspected before.` : "";
    return {
      part: trouble ? `since ${clock.timeWithSeconds(trouble.since)}` : "",
      station: "",
      do: `This screen does not know whether parts are inspected: look at the line.${missed}`,
      why: trouble ? trouble.words : this.status.unavailable,
      age: trouble ? `for ${formatDuration((clock.now - trouble.since) / 1000)}` : "",
    };
  }

  fillBanner(unseen) {
    const last = this.status.misses[0];
    setText(byId("banner-words"), `${formatCount(unseen)} NOT INSPECTED`);
    const which = last?.part_id ? `part ${last.part_id}, ` : "";
    setText(byId("banner-last"), last ? `Last: ${which}${stationName(last.station)}, ${this.clock.time(last.missed_at)}. ${last.detail}` : "");
  }
}

/** Which shift an answer tells of, at which stations, and how many were missed; as one replica knows it, maybe. */
function shiftOf(status) {
  if (!status) return { shift: "", number: 0 };
  const { shift, misses, station } = status;
  return { shift: `${shift?.begin ?? "unread"} ${JSON.stringify(station)}`, number: shift?.not_inspected ?? misses.length };
}
