// Masks that are not saved yet, with their undo steps, in the browser's database: they survive a reload.

const DATABASE = "segdec.drafts";
const STORE = "drafts";

export class DraftStore {
  constructor() {
    this.opening = null;
  }

  /** The draft of a photograph, {state, annotation}; null if there is none, or none can be stored. */
  async find(id) {
    return (await this.#run("readonly", (store) => store.get(id))) ?? null;
  }

  /** Stores a draft; a browser that stores nothing loses it with the page. */
  async keep(id, draft) {
    await this.#run("readwrite", (store) => store.put(draft, id));
  }

  async remove(id) {
    await this.#run("readwrite", (store) => store.delete(id));
  }

  async #run(mode, act) {
    try {
      this.opening ??= settled(open());
      return await settled(act((await this.opening).transaction(STORE, mode).objectStore(STORE)));
    } catch {
      return null; // private windows may have no database
    }
  }
}

function open() {
  const request = indexedDB.open(DATABASE, 1);
  request.onupgradeneeded = () => request.result.createObjectStore(STORE);
  return request;
}

function settled(request) {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}
