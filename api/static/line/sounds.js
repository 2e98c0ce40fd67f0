// Sounds, off by default: two low tones for a defect, a siren for a part that was not inspected.

import { byId, setText } from "../shared/dom.js";
import { translate } from "../shared/language.js";

const PARAMETER = "sound";
const VOLUME = 0.35;
const SOUNDS = {
  defect: [[392, 0.18], [0, 0.05], [262, 0.4]],
  uninspected: [[880, 0.2], [587, 0.2], [880, 0.2], [587, 0.2], [880, 0.2], [587, 0.2], [880, 0.2], [587, 0.4]],
};

export class Sounds {
  constructor() {
    this.context = null;
    this.button = byId("sound");
    this.enabled = new URLSearchParams(location.search).get(PARAMETER) === "on";
    this.button.addEventListener("click", () => this.press());
    if (this.enabled) this.open();
    this.updateButton();
  }

  /** Switches sounds on or off, or gives the browser the click it requires. */
  press() {
    const blocked = this.enabled && this.context?.state !== "running";
    this.enabled = blocked || !this.enabled;
    const address = new URL(location.href);
    if (this.enabled) address.searchParams.set(PARAMETER, "on");
    else address.searchParams.delete(PARAMETER);
    history.replaceState(null, "", address);
    if (this.enabled) this.open().then(() => this.play("defect")); // lets the user check the volume
    this.updateButton();
  }

  /** Resolves once the browser allows sounds. */
  open() {
    this.context ??= new AudioContext();
    this.context.onstatechange = () => this.updateButton();
    return this.context.resume();
  }

  updateButton() {
    const blocked = this.enabled && this.context?.state !== "running";
    setText(this.button, blocked ? translate("Click to enable sound") : this.enabled ? translate("Sound on") : translate("Sound off"));
    this.button.classList.toggle("waits", blocked);
    this.button.setAttribute("aria-pressed", String(this.enabled));
  }

  /** Plays `defect` or `uninspected` if sounds are on. */
  play(name) {
    if (!this.enabled || this.context?.state !== "running") return;
    let at = this.context.currentTime + 0.02;
    for (const [pitch, length] of SOUNDS[name]) {
      if (pitch) this.tone(pitch, at, length);
      at += length;
    }
  }

  tone(pitch, at, length) {
    const tone = new OscillatorNode(this.context, { type: "square", frequency: pitch });
    const volume = new GainNode(this.context, { gain: 0 });
    volume.gain.setValueAtTime(VOLUME, at);
    volume.gain.setTargetAtTime(0, at + length - 0.03, 0.01);
    tone.connect(volume).connect(this.context.destination);
    tone.start(at);
    tone.stop(at + length);
  }
}
