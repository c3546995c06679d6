// Where the browser keeps the randomized report: a report is drawn once, and sent again as it is.
import { ShuffledpError } from "./wire.js";

/** What a request of the database gives, or what a transaction does at its end. */
const outcome = (target, good, bad) => new Promise((resolve, reject) => {
  target.addEventListener(good, () => resolve(target.result));
  target.addEventListener(bad, () => reject(target.error));
});

/**
 * Changes a task's record in one transaction, which no other tab can interrupt: `change` gets the record,
 * or undefined, and returns the one to keep, or the same. What is returned is on disk.
 */
export async function update(task, change) {
  let database, record;
  try {
    const request = globalThis.indexedDB.open("shuffledp", 1);
    request.onupgradeneeded = () => request.result.createObjectStore("reports", { keyPath: "task" });
    database = await outcome(request, "success", "error");
    const transaction = database.transaction("reports", "readwrite", { durability: "strict" });
    const ended = outcome(transaction, "complete", "abort");
    const store = transaction.objectStore("reports");
    store.get(task).onsuccess = ({ target }) => {
      record = change(target.result);
      if (record && record !== target.result) store.put({ ...record, task });
    };
    await ended;
    return record;
  } catch (error) {
    throw error instanceof ShuffledpError ? error : new ShuffledpError("storage");
  } finally {
    database?.close();
  }
}

/** Runs one at a time in all tabs, where the browser can; else the shuffler counts one report of an id. */
export function alone(task, run) {
  return globalThis.navigator?.locks ? navigator.locks.request(`shuffledp ${task}`, run) : run();
}
