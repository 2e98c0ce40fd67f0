// The decision at a threshold that may be another than the model's.

/** {good, label, moved} of an answer's decision at the user's `threshold`, or at the model's when it is null. */
export function decideAt(decision, threshold) {
  const good = goodClass(decision);
  const limit = threshold ?? decision.threshold;
  const moved = limit !== decision.threshold;
  if (decision.score < limit) return { good: true, label: good, moved };
  const defects = Object.entries(decision.probabilities).filter(([name]) => name !== good);
  return { good: false, label: defects.reduce((best, next) => (next[1] > best[1] ? next : best))[0], moved };
}

/** A decision in words: Good, Defect, or Defect: scratch. */
export function wordsFor({ good, label }) {
  if (good) return "Good";
  return label.toLowerCase() === "defect" ? "Defect" : `Defect: ${label}`;
}

/** A decision in words that stand alone: they say when it is not the model's own. */
export function markedWordsFor(decided) {
  return decided.moved ? `${wordsFor(decided)}, at your threshold` : wordsFor(decided);
}

/** A score and a threshold with as many digits as tell them apart. */
export function digits(score, threshold) {
  for (let places = 3; places < 7; places++) {
    const [a, b] = [score.toFixed(places), threshold.toFixed(places)];
    if (a !== b || score === threshold) return [a, b];
  }
  return [String(score), String(threshold)];
}

/** The name of the good class: the answer's label below the threshold, else the class whose share is 1 − score. */
function goodClass({ label, score, threshold, probabilities }) {
  if (score < threshold) return label;
  const away = (name) => Math.abs(1 - score - probabilities[name]);
  const others = Object.keys(probabilities).filter((name) => name !== label);
  return others.reduce((best, next) => (away(next) < away(best) ? next : best));
}
