// Shows the served model; offers a choice if there are several.

import { byId } from "../shared/dom.js";
import { noModelState } from "../shared/empty_state.js";
import { translate } from "../shared/language.js";
import { listModels } from "./requests.js";

export class ModelSelect {
  constructor(credentials) {
    this.credentials = credentials;
    this.models = [];
  }

  /** The chosen model; undefined for the service's default. */
  get chosen() {
    return this.models[Number(byId("models").value || -1)];
  }

  /** Fetches the list of served models. */
  async fill() {
    try {
      this.models = await listModels(this.credentials);
    } catch (error) {
      byId("model").textContent = error.message;
      return;
    }
    const several = this.models.length > 1;
    byId("chooser").hidden = !several;
    byId("model").textContent = several ? "" : this.models.map(modelName).join();
    byId("file-input").hidden = !this.models.length;
    byId("no-model").replaceChildren(...(this.models.length ? [] : [noModelState(translate("This page inspects photographs for surface defects."))]));
    const options = this.models.map((model, index) => new Option(modelName(model), String(index)));
    byId("models").replaceChildren(new Option(translate("default"), "-1"), ...options);
    const found = this.models.findIndex(isOfAddress);
    byId("models").value = String(found);
    byId("other-model").hidden = found >= 0 || modelInAddress() === null || !this.models.length;
    byId("other-model").textContent = translate("The model {model} is not served. The default model inspects the photographs.", { model: modelInAddress() });
  }
}

/** Whether a model is the version that answers, of the model that the address of the page names. */
function isOfAddress({ name, aliases }) {
  return name === modelInAddress() && aliases.includes("stable");
}

function modelInAddress() {
  return new URLSearchParams(location.search).get("model");
}

function modelName({ name, version, aliases }) {
  return `${name} ${version}${aliases.length ? ` (${aliases.join(", ")})` : ""}`;
}
