// The threshold slider: when it moves, everything that depends on the threshold is updated.
"use strict";
{
  const LISTED = 300; // maximum rows of the list of errors, for speed
  const SATURATION = 2 ** -24; // scores are clipped to this distance from 0 and 1, as in the histogram

  const { classes, threshold: chosen, review, rows } = JSON.parse(element("evaluation").textContent);
  const [NAME, TRUTH, PREDICTED, SCORE, REGIONS] = [0, 1, 2, 3, 4];
  const slider = element("threshold");
  const [low, high] = [Number(slider.dataset.low), Number(slider.dataset.high)];
  const levels = [...new Set(rows.map((row) => row[SCORE]))].sort((a, b) => a - b);
  const cards = [...document.querySelectorAll(".card")];
  const cardOf = new Map(cards.map((card) => [Number(card.dataset.row), card.id]));

  function element(id) {
    return document.getElementById(id);
  }

  // === Scores and odds ===

  function toOdds(score) {
    const clipped = Math.min(Math.max(score, SATURATION), 1 - SATURATION);
    return Math.log10(clipped / (1 - clipped));
  }

  function toScore(odds) {
    return 1 / (1 + 10 ** -odds);
  }

  /** The threshold at a slider position; the ends are below and, if possible, above all scores. */
  function thresholdAt(odds) {
    if (odds <= low) return Math.min(toScore(low), levels[0]);
    if (odds >= high) return levels.at(-1) < toScore(high) ? toScore(high) : 1;
    return toScore(odds);
  }

  /** A threshold in the middle of the gap below levels[place]. */
  function thresholdBelow(place) {
    if (place <= 0) return thresholdAt(low);
    if (place >= levels.length) return thresholdAt(high);
    const middle = toScore((toOdds(levels[place - 1]) + toOdds(levels[place])) / 2);
    return levels[place - 1] < middle && middle <= levels[place] ? middle : levels[place];
  }

  // === Formatting, as in training/formatting.py ===

  /** Three decimals; ties (odd sixteenths) are rounded to even, as in Python. */
  function formatFixed(value) {
    return ((value * 16) % 4 === 1 ? value - 1e-9 : value).toFixed(3);
  }

  function formatScore(value) {
    const short = (number) => number.toExponential(0).replace(/e-(\d)$/, "e-0$1");
    if (value > 0 && value < 0.001) return short(value);
    if (value > 0.999 && value < 1) return `1 − ${short(1 - value)}`;
    return formatFixed(value);
  }

  function formatShare(part, whole) {
    if (!whole) return "–";
    const value = part / whole;
    return formatFixed(value > 0.999 ? Math.floor(value * 1000) / 1000 : value);
  }

  /** The decision at a threshold; the review threshold is fixed. */
  function decide(row, threshold) {
    if (row[SCORE] >= threshold) return "defective";
    return review !== null && row[SCORE] >= review ? "review" : "good";
  }

  /** Outcome and predicted class of an image at a threshold. */
  function outcomeOf(row, threshold) {
    const decision = decide(row, threshold);
    if (decision === "review") return ["for review", "review"];
    if (decision === "good") return [row[TRUTH] ? "missed defect" : "correct", classes[0]];
    // For an image that was called good or for review, the report does not know the defect class.
    const given = row[PREDICTED] || (classes.length === 2 ? 1 : 0);
    const label = given ? classes[given] : "defective";
    if (!row[TRUTH]) return ["false alarm", label];
    return [given && given !== row[TRUTH] ? "wrong class" : "correct", label];
  }

  // === Showing a threshold ===

  let current = chosen;
  let due = false;

  function choose(threshold, moveSlider = true) {
    current = threshold;
    if (moveSlider) slider.value = (slider.max * (toOdds(threshold) - low)) / (high - low);
    const counts = count(threshold);
    showCounts(counts);
    movePoints(counts);
    if (!due) requestAnimationFrame(showPhotographs);
    due = true;
  }

  function count(threshold) {
    const counts = { found: 0, missed: 0, alarms: 0, passed: 0, goodReviews: 0, defectiveReviews: 0 };
    const ofGood = { defective: "alarms", review: "goodReviews", good: "passed" };
    const ofDefective = { defective: "found", review: "defectiveReviews", good: "missed" };
    for (const row of rows) counts[(row[TRUTH] ? ofDefective : ofGood)[decide(row, threshold)]]++;
    return counts;
  }

  function showCounts(counts) {
    const { found, missed, alarms, goodReviews, defectiveReviews } = counts;
    const reviews = goodReviews + defectiveReviews;
    const shown = {
      ...counts,
      reviews,
      precision: formatShare(found, found + alarms),
      recall: formatShare(found, found + missed + defectiveReviews),
    };
    for (const place of document.querySelectorAll("[data-count]")) {
      place.textContent = shown[place.dataset.count];
    }
    element("threshold-value").textContent = formatScore(current);
    element("threshold-value").title = String(current);
    showCommand();
    const held = review === null ? "" : `, ${reviews} for review`;
    slider.setAttribute(
      "aria-valuetext",
      `${formatScore(current)}: ${missed} missed, ${alarms} false alarms${held}`,
    );
  }

  /** Shows the command that sets the threshold; none for 0 and 1, which cannot be set. */
  function showCommand() {
    const command = element("apply-command");
    command.textContent = `${command.dataset.command} ${shorten(current)}`;
    element("apply").hidden = current <= 0 || current >= 1;
  }

  /** The threshold with the fewest digits, at least three, that decides the same; the model's own stays exact. */
  function shorten(threshold) {
    if (threshold === chosen) return threshold;
    for (let digits = 3; digits < 17; digits++) {
      const short = Number(threshold.toPrecision(digits));
      if (short > 0 && short < 1 && levels.every((level) => level >= short === level >= threshold)) return short;
    }
    return threshold;
  }

  const began = count(chosen);

  function movePoints(counts) {
    const odds = Math.min(Math.max(toOdds(current), low), high);
    for (const line of document.querySelectorAll("svg .line")) shift(line, odds - toOdds(chosen), 0);
    for (const point of document.querySelectorAll("svg .point")) {
      const [now, before] = [counts, began].map(point.matches(".roc") ? onRoc : onPrecisionRecall);
      const seen = now[1] !== null;
      point.classList.toggle("hidden", !seen);
      if (seen) shift(point, now[0] - before[0], now[1] - (before[1] ?? 0));
    }
  }

  function onRoc({ found, missed, alarms, passed, goodReviews, defectiveReviews }) {
    return [alarms / (alarms + passed + goodReviews), found / (found + missed + defectiveReviews)];
  }

  function onPrecisionRecall({ found, missed, alarms, defectiveReviews }) {
    return [found / (found + missed + defectiveReviews), found + alarms ? found / (found + alarms) : null];
  }

  /** Moves an element of a chart by an amount in units of its axes. */
  function shift(part, x, y) {
    const { scaleX, scaleY } = part.closest("svg").dataset;
    part.setAttribute("transform", `translate(${x * scaleX} ${-y * scaleY})`);
  }

  function showPhotographs() {
    due = false;
    const outcomes = rows.map((row) => outcomeOf(row, current));
    for (const card of cards) showCard(card, ...outcomes[card.dataset.row]);
    listErrors(outcomes);
  }

  function showCard(card, outcome, label) {
    const wrong = isWrong(outcome);
    card.dataset.wrong = !wrong ? "no" : card.dataset.began === "yes" ? "yes" : "changed";
    const kind = card.querySelector(".kind");
    kind.className = kindClass(outcome);
    kind.textContent = outcome;
    card.querySelector(".predicted").textContent = label;
  }

  function isWrong(outcome) {
    return outcome !== "correct" && outcome !== "for review";
  }

  function kindClass(outcome) {
    return `kind ${outcome.replace(" ", "-")}`;
  }

  function listErrors(outcomes) {
    const order = ["missed defect", "false alarm", "wrong class"];
    const wrong = [...outcomes.keys()].filter((place) => isWrong(outcomes[place][0]));
    const distance = (place) => Math.abs(rows[place][SCORE] - current);
    wrong.sort(
      (a, b) => order.indexOf(outcomes[a][0]) - order.indexOf(outcomes[b][0]) || distance(b) - distance(a),
    );
    element("errors").replaceChildren(...wrong.slice(0, LISTED).map((place) => line(place, ...outcomes[place])));
    element("errors").closest(".errors-table").hidden = !wrong.length;
    element("errors-note").textContent = describeErrors(wrong);
  }

  function describeErrors(wrong) {
    const where = current === chosen ? "the model's own threshold" : `the threshold ${formatScore(current)}`;
    const unseen = wrong.filter((place) => !cardOf.has(place)).length;
    const parts = [`${wrong.length || "None"} at ${where}.`];
    if (wrong.length > LISTED) parts.push(`The first ${LISTED} are listed.`);
    if (unseen) parts.push(`${unseen} without a picture: they are correct at the model's own threshold.`);
    return parts.join(" ");
  }

  function line(place, outcome, label) {
    const row = rows[place];
    const kind = document.createElement("span");
    kind.className = kindClass(outcome);
    kind.textContent = outcome;
    let name = row[NAME];
    if (cardOf.has(place)) {
      name = document.createElement("a");
      name.href = `#${cardOf.get(place)}`;
      name.textContent = row[NAME];
    }
    const entry = document.createElement("tr");
    for (const [content, number] of [
      [name],
      [kind],
      [formatScore(row[SCORE]), true],
      [classes[row[TRUTH]]],
      [label],
      [row[REGIONS], true],
    ]) {
      const cell = entry.insertCell();
      if (number) cell.className = "number";
      cell.append(content);
    }
    return entry;
  }

  // === Moving it ===

  /** Index of the first score at or above the threshold. */
  function placeOf(threshold) {
    const place = levels.findIndex((level) => level >= threshold);
    return place < 0 ? levels.length : place;
  }

  slider.addEventListener("input", () => {
    choose(thresholdAt(low + ((high - low) * slider.value) / slider.max), false);
  });
  element("lower").addEventListener("click", () => choose(thresholdBelow(placeOf(current) - 1)));
  element("higher").addEventListener("click", () => choose(thresholdBelow(placeOf(current) + 1)));
  for (const mark of document.querySelectorAll("[data-threshold]")) {
    mark.addEventListener("click", () => choose(Number(mark.dataset.threshold)));
  }
  element("only-errors").addEventListener("change", (event) => {
    document.body.classList.toggle("only-errors", event.target.checked);
  });
  showCommand();
  element("bar").hidden = false;
  element("filter").hidden = false;
}
