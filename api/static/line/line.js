// The line display: polls the service once a second and shows its status.

import { byId, setText } from "../shared/dom.js";
import { translate } from "../shared/language.js";
import { askForCredentials } from "../shared/credentials_prompt.js";
import { Credentials } from "../shared/credentials.js";
import { RecordRequests } from "../shared/record_requests.js";
import { Alarm } from "./alarm.js";
import { enableKiosk } from "./kiosk.js";
import { keepScreenOn } from "./wake_lock.js";
import { Charts } from "./charts.js";
import { showCounts } from "./counts.js";
import { LastPhotograph } from "./last_photograph.js";
import { RecentDefects } from "./recent_defects.js";
import { StatusPoller } from "./status_poller.js";
import { Sounds } from "./sounds.js";
import { showNotices, silenceNotices, Stations } from "./stations.js";
import { Clock } from "./clock.js";
import { showTrainingDistance, trainingNotices } from "./training_distance.js";
import { UnlikeDialog, unlikeNotices } from "./unlike_photographs.js";
import { showVerdict, showWaiting, tickVerdict } from "./verdict.js";

const STALE_MS = 6000; // after which a response is outdated
const TICK_MS = 500;
const SIREN_INTERVAL_MS = 15_000;

const credentials = new Credentials(askForCredentials);
const clock = new Clock();
const charts = new Charts();
const defects = new RecentDefects(credentials);
const lastPhotograph = new LastPhotograph(credentials);
const sounds = new Sounds();
const alarm = new Alarm(() => askAgain());
const requests = new RecordRequests(credentials);
const unlikeDialog = new UnlikeDialog(requests);
const stations = new Stations(
  (station) => follow(station),
  async (text) => (await requests.names(text)).stations,
);
const poller = new StatusPoller({ credentials, onAnswer: show, onError: onPollError });

let status = null; // the last response
let answeredAt = performance.now();
let failure = { message: translate("No response yet."), needsKey: false };
let newest = null; // id of the newest defect with a sound played
let sirenAt = -Infinity;

function show(answer) {
  status = answer;
  answeredAt = performance.now();
  failure = { message: "", needsKey: false };
  clock.set(answer.at, answer.zone);
  stations.fill(answer.stations);
  showVerdict(answer.last);
  byId("none").hidden = answer.last !== null;
  lastPhotograph.show(answer.last);
  showCounts(answer.shift, answer.day, clock);
  unlikeDialog.update(answer.unlike);
  const notices = [...unlikeNotices(answer.unlike), ...silenceNotices(answer.quiet, clock), ...trainingNotices(answer.training)];
  showNotices(notices, (station) => unlikeDialog.open(station));
  charts.show(answer, clock);
  showTrainingDistance(answer.training);
  defects.show(answer.defects, clock);
  announceDefect(answer.defects[0]?.record_id ?? 0);
  tick();
}

function onPollError(message, needsKey) {
  failure = { message, needsKey };
  tick();
}

/** Plays a sound for each new defect, but not for those before the page was opened. */
function announceDefect(defect) {
  if (newest !== null && defect > newest) sounds.play("defect");
  newest = Math.max(newest ?? 0, defect);
}

/** Updates everything that depends on the time. */
function tick() {
  const age = performance.now() - answeredAt;
  const trouble = age > STALE_MS || failure.needsKey ? { since: clock.now - age, ...failure } : null;
  tickVerdict(status?.last ?? null, clock);
  setText(byId("clock"), status ? clock.timeWithSeconds(clock.now) : "");
  alarm.tick(status, clock, trouble);
  if (!alarm.kind) sirenAt = -Infinity;
  else if (performance.now() - sirenAt > SIREN_INTERVAL_MS) {
    sirenAt = performance.now();
    sounds.play("uninspected");
  }
}

function follow(station) {
  status = newest = null;
  answeredAt = performance.now();
  showWaiting();
  lastPhotograph.show(null);
  poller.follow(station);
}

function askAgain() {
  credentials.declined = false;
  follow(stations.chosen);
}

enableKiosk();
setInterval(tick, TICK_MS);
keepScreenOn();
follow(stations.chosen);
