// Where the browser keeps the randomized report: a report is drawn once, and sent again as it is.
import { ShuffledpError } from "./wire.js";

const refuse = () => new ShuffledpError("storage", "This browser window keeps nothing (a private window, or storage is switched off), and a randomized report must be kept before it is sent, so that it is never drawn twice: open the page in an ordinary window.");

const finished = (request) => new Promise((resolve, reject) => {
  request.onsuccess = () => resolve(request.result);
  request.onerror = () => reject(request.error);
});

async function opened() {
  try {
    const request = globalThis.indexedDB.open("shuffledp", 1);
    request.onupgradeneeded = () => request.result.createObjectStore("reports", { keyPath: "task" });
    return await finished(request);
  } catch {
    throw refuse();
  }
}

/**
 * Changes a task's record in one transaction, which no other tab can interrupt: `change` gets the record,
 * or undefined, and returns the one to keep, or the same. What is returned is on disk.
 */
export async function update(task, change) {
  const database = await opened();
  try {
    const transaction = database.transaction("reports", "readwrite", { durability: "strict" });
    const store = transaction.objectStore("reports");
    let problem, record;
    const ended = new Promise((resolve, reject) => {
      transaction.oncomplete = resolve;
      transaction.onabort = () => reject(problem ?? refuse());
    });
    const reading = store.get(task);
    reading.onsuccess = () => {
      try {
        record = change(reading.result);
        if (record && record !== reading.result) store.put({ ...record, task });
      } catch (error) {
        problem = error;
        transaction.abort();
      }
    };
    await ended;
    return record;
  } finally {
    database.close();
  }
}

/** Runs one at a time in all tabs, where the browser can; else the shuffler counts one report of an id. */
export function alone(task, run) {
  return globalThis.navigator?.locks ? navigator.locks.request(`shuffledp ${task}`, run) : run();
}
