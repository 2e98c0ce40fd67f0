// A small hourly chart: a band of usual values, a line, and points of several shapes.

const NAMESPACE = "http://www.w3.org/2000/svg";
const MARGIN = { left: 4.2, right: 1, top: 0.8, bottom: 1.8 }; // in em
const LABEL_INTERVAL_H = 4;
const MIN_LABEL_DISTANCE = 3.8; // in em; at a smaller one, every second label is left out

export class Plot {
  /** `picture` is the svg element; `describe(value)` formats a value of the vertical axis. */
  constructor(picture, describe) {
    Object.assign(this, { picture, describe });
    this.drawn = "";
    this.content = null;
    new ResizeObserver(() => requestAnimationFrame(() => this.draw(true))).observe(picture);
  }

  /**
   * Shows {hours, points, band, centre, from, to, label, time}: `hours` are their times, `points` {value, kind} or
   * null for each, `band` [low, high] or null for each, `centre` a value or null, `from` and `to` the ends of the
   * axis; `label` is the text alternative, `time(hour)` formats an hour.
   */
  show(content) {
    this.content = content;
    this.draw(false);
  }

  draw(resized) {
    if (!this.content) return;
    const content = JSON.stringify(this.content);
    if (!resized && content === this.drawn) return;
    this.drawn = content;
    const { clientWidth: width, clientHeight: height } = this.picture;
    if (!width || !height) return;
    const em = parseFloat(getComputedStyle(this.picture).fontSize);
    const frame = {
      left: MARGIN.left * em,
      right: width - MARGIN.right * em,
      top: MARGIN.top * em,
      bottom: height - MARGIN.bottom * em,
    };
    this.picture.setAttribute("viewBox", `0 0 ${width} ${height}`);
    this.picture.setAttribute("aria-label", this.content.label);
    this.picture.replaceChildren(...this.parts(frame, em));
  }

  parts(frame, em) {
    const { hours, points, band, centre, from, to } = this.content;
    const step = (frame.right - frame.left) / hours.length;
    const x = (index) => frame.left + (index + 0.5) * step;
    const y = (value) => frame.bottom - ((value - from) / (to - from)) * (frame.bottom - frame.top);
    const made = [from, (from + to) / 2, to].flatMap((value) => this.level(frame, y(value), value, em));
    hours.forEach((hour, index) => {
      const place = band[index];
      if (place) made.push(shape("rect", "band", { x: frame.left + index * step, width: step + 0.5, y: y(place[1]), height: Math.max(y(place[0]) - y(place[1]), 1) }));
    });
    if (centre !== null) made.push(shape("path", "centre", { d: `M${frame.left} ${y(centre)}H${frame.right}` }));
    made.push(shape("path", "line", { d: path(points.map((point, index) => point && [x(index), y(point.value)])) }));
    points.forEach((point, index) => {
      if (point) made.push(mark(point.kind, x(index), y(point.value), em));
    });
    return [...made, ...this.times(frame, x, em)];
  }

  level(frame, place, value, em) {
    const label = shape("text", "", { x: frame.left - 0.4 * em, y: place + 0.35 * em, "text-anchor": "end" });
    label.textContent = this.describe(value);
    return [shape("path", "level", { d: `M${frame.left} ${place}H${frame.right}` }), label];
  }

  times(frame, x, em) {
    const { hours, time } = this.content;
    const last = hours.length - 1;
    const isDense = LABEL_INTERVAL_H * (x(1) - x(0)) < MIN_LABEL_DISTANCE * em;
    const interval = isDense ? 2 * LABEL_INTERVAL_H : LABEL_INTERVAL_H;
    return hours.flatMap((hour, index) => {
      if ((last - index) % interval) return [];
      const label = shape("text", "", { x: x(index), y: frame.bottom + 1.4 * em, "text-anchor": "middle" });
      label.textContent = time(hour);
      return [label];
    });
  }
}

function path(places) {
  let begun = false;
  return places
    .map((place) => {
      if (!place) return (begun = false) || "";
      const word = begun ? "L" : "M";
      begun = true;
      return `${word}${place[0].toFixed(1)} ${place[1].toFixed(1)}`;
    })
    .join("");
}

/** A point: `usual` is a dot, `few` a ring, `high` and `low` a triangle that points up or down. */
function mark(kind, x, y, em) {
  const size = em * (kind === "high" || kind === "low" ? 0.62 : 0.26);
  if (kind === "usual" || kind === "few") return shape("circle", kind, { cx: x, cy: y, r: size });
  const up = kind === "high" ? -1 : 1;
  return shape("path", `out ${kind}`, { d: `M${x} ${y + up * size}l${size} ${-up * 1.7 * size}h${-2 * size}z` });
}

function shape(name, className, attributes) {
  const made = document.createElementNS(NAMESPACE, name);
  if (className) made.setAttribute("class", className);
  for (const [attribute, value] of Object.entries(attributes)) made.setAttribute(attribute, value);
  return made;
}
