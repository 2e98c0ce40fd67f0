// The curves of a training, with one axis of steps across its stages.

import { byId } from "../shared/dom.js";
import { drawChart, line } from "../shared/chart.js";
import { formatDecimals, formatNumber, translate } from "../shared/language.js";

const MAX_POINTS = 600;
const MAX_STEP = 1e9;

export class Curves {
  constructor() {
    this.records = new Map(); // a training that continued from a checkpoint repeats records
  }

  /** Adds records of the training's log and draws the curves. */
  add(records) {
    for (const record of records.filter(isDrawable)) this.records.set(`${record.kind} ${record.stage_index} ${record.step}`, record);
    if (records.length) this.#draw();
  }

  #draw() {
    const offsets = this.#stageOffsets();
    const position = ({ stage_index: stage, step }) => offsets.get(stage) + step;
    const sorted = (kind) => [...this.records.values()].filter((record) => record.kind === kind).sort((one, other) => position(one) - position(other));
    const [train, validation] = [thin(sorted("train")), sorted("val")];
    byId("no-curve").hidden = this.records.size > 0;
    const x = { label: translate("Step"), write: (value) => formatNumber(value) };
    const column = (records, name) => records.map((record) => toDrawn(record[name]));
    drawChart(byId("loss"), [train.map(position), column(train, "loss")], {
      x,
      y: { write: (value) => formatDecimals(value, 3) },
      series: [line(translate("Loss"), "--text", { width: 2, points: { show: false } })],
    });
    byId("quality").hidden = !validation.length; // folds have no photographs for validation
    if (validation.length) drawChart(byId("quality"), [validation.map(position), column(validation, "average_precision"), column(validation, "pixel_f1")], {
      x,
      y: { write: (value) => formatDecimals(value, 2), range: [0, 1] },
      series: [
        line(translate("Average precision of photographs"), "--accent", { width: 2 }),
        line(translate("F1 of mask pixels"), "--defect", { width: 2, dash: [6, 4] }),
      ],
    });
  }

  /** Steps before each stage, by its index. */
  #stageOffsets() {
    const lengths = new Map();
    for (const { stage_index: stage, step } of this.records.values()) lengths.set(stage, Math.max(lengths.get(stage) ?? 0, step));
    const offsets = new Map();
    let sum = 0;
    for (const stage of [...lengths.keys()].sort((one, other) => one - other)) {
      offsets.set(stage, sum);
      sum += lengths.get(stage);
    }
    return offsets;
  }
}

/** Whether a record has a place on the axis; a worker may report anything. */
function isDrawable({ stage_index: stage, step }) {
  return [stage, step].every((number) => Number.isInteger(number) && number >= 0 && number <= MAX_STEP);
}

/** A value with the precision of 32 bits, so that the marks of an axis differ; null for what is not a number. */
function toDrawn(value) {
  const rounded = typeof value === "number" ? Math.fround(value) : NaN;
  return Number.isFinite(rounded) ? rounded : null;
}

/** At most MAX_POINTS of the records, evenly chosen. */
function thin(records) {
  const every = Math.ceil(records.length / MAX_POINTS);
  return records.filter((_, at) => at % every === 0 || at === records.length - 1);
}
