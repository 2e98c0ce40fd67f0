// The bar above everything else: how many photographs were not inspected. No other state is as loud.

export class FailedBanner {
  /** `onShow(entry)` is told which photograph to show, `onRetry(entries)` which to inspect again. */
  constructor({ onShow, onRetry }) {
    this.bar = document.getElementById("missed");
    this.title = document.title;
    this.entries = [];
    this.displayed = null;
    document.getElementById("missed-next").addEventListener("click", () => {
      this.displayed = this.entries[(this.entries.indexOf(this.displayed) + 1) % this.entries.length];
      onShow(this.displayed);
    });
    document.getElementById("missed-again").addEventListener("click", () => onRetry([...this.entries]));
  }

  /** Counts those of `entries`, in their order, that were not inspected; one alone says so itself. */
  update(entries) {
    this.entries = entries.filter(({ state }) => state === "failed");
    const count = this.entries.length;
    const text = `${count} not inspected`;
    this.bar.hidden = !count || entries.length < 2;
    document.title = count ? `${text} – ${this.title}` : this.title;
    if (document.getElementById("missed-count").textContent === text) return; // else it would be read out again
    document.getElementById("missed-count").textContent = text;
    const hint = count === 1 ? "Hold this part: nothing is known about it." : "Hold these parts: nothing is known about them.";
    document.getElementById("missed-hold").textContent = hint;
  }
}
