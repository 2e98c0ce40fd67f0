// The bar above everything else: how many photographs were not inspected. No other state is as loud.

export class Missed {
  /** `onShow(entry)` is told which photograph to show, `onRetry(entries)` which to inspect again. */
  constructor({ onShow, onRetry }) {
    this.bar = document.getElementById("missed");
    this.title = document.title;
    this.entries = [];
    this.shown = null;
    document.getElementById("missed-next").addEventListener("click", () => {
      this.shown = this.entries[(this.entries.indexOf(this.shown) + 1) % this.entries.length];
      onShow(this.shown);
    });
    document.getElementById("missed-again").addEventListener("click", () => onRetry([...this.entries]));
  }

  /** Counts those of `entries`, in their order, that were not inspected; one alone says so itself. */
  update(entries) {
    this.entries = entries.filter(({ state }) => state === "failed");
    const count = this.entries.length;
    const words = `${count} not inspected`;
    this.bar.hidden = !count || entries.length < 2;
    document.title = count ? `${words} – ${this.title}` : this.title;
    if (document.getElementById("missed-count").textContent === words) return; // else it would be read out again
    document.getElementById("missed-count").textContent = words;
    const parts = count === 1 ? "Hold this part: nothing is known about it." : "Hold these parts: nothing is known about them.";
    document.getElementById("missed-hold").textContent = parts;
  }
}
