// Stations with many photographs unlike the training, and the dialog that shows and confirms them.

import { ContactSheet } from "../shared/contact_sheet.js";
import { byId, setText } from "../shared/dom.js";
import { formatNumber, translate, translateCount } from "../shared/language.js";
import { warningText } from "../shared/record_text.js";
import { stationName } from "./format.js";

/** Notices about these stations; the last item is the name of the station, whose photographs a button shows. */
export function unlikeNotices(reports) {
  return reports.map((report) => ["unlike", stationName(report.station), reportText(report), report.station]);
}

function reportText({ unlike, photographs, reason }) {
  const values = { count: formatNumber(unlike), total: formatNumber(photographs), reason: warningText(reason) };
  return translate("photographs: {count} of the last {total} are unlike those of the training. Most often: {reason}", values);
}

export class UnlikeDialog {
  /** `requests` are RecordRequests. */
  constructor(requests) {
    Object.assign(this, { requests, reports: [], shown: null });
    this.dialog = byId("unlike");
    this.sheet = new ContactSheet(byId("unlike-photographs"), requests);
    byId("unlike-close").addEventListener("click", () => this.dialog.close());
    byId("unlike-confirm").addEventListener("click", () => this.#confirm());
    this.dialog.addEventListener("close", () => this.sheet.clear());
  }

  /** Notes the present reports; an open dialog stays as it is. */
  update(reports) {
    this.reports = reports;
  }

  /** Shows the newest photographs of a station. */
  open(station) {
    const report = this.reports.find((one) => one.station === station);
    if (!report) return;
    this.shown = report;
    byId("unlike-title").textContent = translate("Unlike the training: {station}", { station: stationName(station) });
    byId("unlike-text").textContent = reportText(report);
    byId("unlike-confirm").textContent = translateCount(report.records.length, "This {count} photograph is fine", "These {count} photographs are fine");
    byId("unlike-confirm").disabled = false;
    setText(byId("unlike-problem"), "");
    for (const id of report.records) this.sheet.add({ record_id: id, part_id: null });
    this.dialog.showModal();
  }

  async #confirm() {
    byId("unlike-confirm").disabled = true;
    setText(byId("unlike-problem"), "");
    try {
      await this.requests.confirmUsual(this.shown.model, this.shown.records);
      this.dialog.close();
    } catch (error) {
      setText(byId("unlike-problem"), error.message);
      byId("unlike-confirm").disabled = false;
    }
  }
}
