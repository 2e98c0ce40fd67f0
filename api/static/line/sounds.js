// Sounds, off until somebody wants them: two low tones for a defect, a long siren where nothing was inspected.

import { part, write } from "./words.js";

const PARAMETER = "sound";
const VOLUME = 0.35;
const SOUNDS = {
  defect: [[392, 0.18], [0, 0.05], [262, 0.4]],
  missed: [[880, 0.2], [587, 0.2], [880, 0.2], [587, 0.2], [880, 0.2], [587, 0.2], [880, 0.2], [587, 0.4]],
};

export class Sounds {
  constructor() {
    this.context = null;
    this.button = part("sound");
    this.wanted = new URLSearchParams(location.search).get(PARAMETER) === "on";
    this.button.addEventListener("click", () => this.press());
    if (this.wanted) this.open();
    this.tell();
  }

  /** Switches on, or lets the browser know of the click that it waited for, or switches off. */
  press() {
    const waits = this.wanted && this.context?.state !== "running";
    this.wanted = waits || !this.wanted;
    const address = new URL(location.href);
    if (this.wanted) address.searchParams.set(PARAMETER, "on");
    else address.searchParams.delete(PARAMETER);
    history.replaceState(null, "", address);
    if (this.wanted) this.open().then(() => this.play("defect")); // so that it is heard how loud it is
    this.tell();
  }

  /** Is done once the browser lets sounds be heard. */
  open() {
    this.context ??= new AudioContext();
    this.context.onstatechange = () => this.tell();
    return this.context.resume();
  }

  tell() {
    const waits = this.wanted && this.context?.state !== "running";
    write(this.button, waits ? "Press for sound" : this.wanted ? "Sound on" : "Sound off");
    this.button.classList.toggle("waits", waits);
    this.button.setAttribute("aria-pressed", String(this.wanted));
  }

  /** Plays `defect` or `missed`, if sounds are wanted. */
  play(name) {
    if (!this.wanted || this.context?.state !== "running") return;
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
