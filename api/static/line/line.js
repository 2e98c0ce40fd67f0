// The screen of the line: asks once a second and shows what is answered, for whoever looks up.

import { askKey } from "../shared/key_prompt.js";
import { Key } from "../shared/service.js";
import { Alarm } from "./alarm.js";
import { stayAwake } from "./awake.js";
import { Charts } from "./charts.js";
import { showCounts } from "./counts.js";
import { Defects } from "./defects.js";
import { Feed } from "./feed.js";
import { Sounds } from "./sounds.js";
import { showQuiet, Stations } from "./stations.js";
import { Clock } from "./times.js";
import { showVerdict, showWaiting, tickVerdict } from "./verdict.js";
import { part, write } from "./words.js";

const STALE_MS = 6000; // after which an answer is no longer believed
const TICK_MS = 500;
const SOUND_AGAIN_MS = 15_000;

const key = new Key(askKey);
const clock = new Clock();
const charts = new Charts();
const defects = new Defects(key);
const sounds = new Sounds();
const alarm = new Alarm(() => giveKey());
const stations = new Stations((station) => follow(station));
const feed = new Feed({ key, onAnswer: show, onTrouble: note });

let status = null; // the last answer
let answeredAt = performance.now();
let lost = { words: "Nothing has answered yet.", needsKey: false };
let newest = null; // the newest defect that was heard
let siren = -Infinity;

function show(answer) {
  status = answer;
  answeredAt = performance.now();
  lost = { words: "", needsKey: false };
  clock.set(answer.at, answer.zone);
  stations.fill(answer.stations);
  showVerdict(answer.last);
  showCounts(answer.shift, answer.day, clock);
  showQuiet(answer.quiet, clock);
  charts.show(answer, clock);
  defects.show(answer.defects, clock);
  hear(answer.defects[0]?.record_id ?? 0);
  tick();
}

function note(words, needsKey) {
  lost = { words, needsKey };
  tick();
}

/** A defect that came since the last answer is heard once; those from before the page was opened are not. */
function hear(defect) {
  if (newest !== null && defect > newest) sounds.play("defect");
  newest = Math.max(newest ?? 0, defect);
}

/** Brings what depends on the time up to date. */
function tick() {
  const age = performance.now() - answeredAt;
  const trouble = age > STALE_MS || lost.needsKey ? { since: clock.now - age, ...lost } : null;
  tickVerdict(status?.last ?? null, clock);
  write(part("clock"), status ? clock.exactly(clock.now) : "");
  alarm.tick(status, clock, trouble);
  if (!alarm.kind) siren = -Infinity;
  else if (performance.now() - siren > SOUND_AGAIN_MS) {
    siren = performance.now();
    sounds.play("missed");
  }
}

function follow(station) {
  status = newest = null; // of another station
  answeredAt = performance.now();
  showWaiting();
  feed.follow(station);
}

function giveKey() {
  key.declined = false;
  follow(stations.chosen);
}

setInterval(tick, TICK_MS);
stayAwake();
follow(stations.chosen);
