// Times and durations by the clock of the service; the clock of the screen may be wrong.

import { LOCALE } from "../shared/language.js";
import { repeatedOffset } from "../shared/time_zone.js";

const MINUTE = 60;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** A duration in one or two units. */
export function formatDuration(seconds) {
  const whole = Math.max(0, Math.floor(seconds));
  if (whole < MINUTE) return `${whole} s`;
  if (whole < HOUR) return `${Math.floor(whole / MINUTE)} min`;
  if (whole < DAY) return both(whole, [HOUR, "h"], [MINUTE, "min"]);
  return both(whole, [DAY, "d"], [HOUR, "h"]);
}

function both(seconds, [large, first], [small, second]) {
  const rest = Math.floor((seconds % large) / small);
  return `${Math.floor(seconds / large)} ${first}${rest ? ` ${rest} ${second}` : ""}`;
}

/** The clock of the service, displayed in the plant's time zone. */
export class Clock {
  constructor() {
    this.shift = Date.now();
    this.setZone("UTC");
    this.set(new Date().toISOString(), "UTC");
  }

  /** Sets the time `at` of a new response, and the plant's `zone`. */
  set(at, zone) {
    this.shift = Date.parse(at) - performance.now();
    if (zone !== this.zone) this.setZone(zone);
  }

  setZone(zone) {
    this.zone = zone;
    this.offsetText = repeatedOffset(zone);
    const format = (options) => new Intl.DateTimeFormat(LOCALE, { timeZone: zone, hourCycle: "h23", ...options });
    this.minutes = format({ hour: "2-digit", minute: "2-digit" });
    this.seconds = format({ hour: "2-digit", minute: "2-digit", second: "2-digit" });
  }

  get now() {
    return this.shift + performance.now();
  }

  /** Seconds since the time `at`. */
  since(at) {
    return (this.now - Date.parse(at)) / 1000;
  }

  /** A time of the day, as 14:05. */
  time(at) {
    return this.minutes.format(new Date(at)) + this.offsetText(at);
  }

  /** A time of the day, as 14:05:30. */
  timeWithSeconds(at) {
    return this.seconds.format(new Date(at)) + this.offsetText(at);
  }
}
