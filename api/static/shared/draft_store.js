// Work that is not saved yet, with its undo steps, in the browser's database: it survives a reload.

const STORE = "drafts";

export class DraftStore {
  /** `database` is the name of the database in the browser. */
  constructor(database) {
    this.database = database;
    this.opening = null;
  }

  /** The draft of `id`; null if there is none, or none can be stored. */
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
      this.opening ??= settled(open(this.database));
      return await settled(act((await this.opening).transaction(STORE, mode).objectStore(STORE)));
    } catch {
      return null; // private windows may have no database
    }
  }
}

function open(database) {
  const request = indexedDB.open(database, 1);
  request.onupgradeneeded = () => request.result.createObjectStore(STORE);
  return request;
}

function settled(request) {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}
