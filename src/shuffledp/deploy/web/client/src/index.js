// The client of a browser: `await report(taskUrl, value)`. See docs/guides/browser-client.md.
import { Aes128Gcm, CipherSuite, DhkemX25519HkdfSha256, HkdfSha256 } from "@hpke/core";
import { checkedLaw, encode, randomize, requireKnown } from "./randomize.js";
import { alone, update } from "./store.js";
import { ShuffledpError, concat, decodeKeys, decodeTask, reportId, sealReport, sha256, toHex } from "./wire.js";

export { ShuffledpError };

const ANSWERS = ["accepted", "replayed", "late", "early", "unknown-key", "not-admitted"];
const FINAL = ["accepted", "replayed", "late"];

/** Sends a randomized report on `value`, once per task, and returns its id and bytes. */
export async function report(taskUrl, value, { onState = () => {}, code, patienceSeconds = 60, ...limits } = {}) {
  const task = await fetchTask(taskUrl, limits);
  onState("checked", task);
  return alone(task.name, async () => {
    let record = (await found(task.name)) ?? (await draw(task, value, code));
    if (code && record.answer === "not-admitted") {
      const id = await reportId(task, record.epoch, code);
      // Under its new id it may arrive, and then it keeps that one.
      record = await update(task.name, (kept) => ({ ...record, ...kept, id, answer: null }));
    }
    onState("kept", receipt(record));
    return receipt(FINAL.includes(record.answer) ? record : await send(task, record, onState, patienceSeconds));
  });
}

/** The receipt of the report that this browser keeps of a task, or null. */
export async function kept(taskUrl) {
  const record = await found(nameOf(taskUrl));
  return record ? receipt(record) : null;
}

/** The task of a URL, if its bytes have the hash in the URL and this client can answer it. */
export async function fetchTask(taskUrl, limits) {
  const name = nameOf(taskUrl);
  return readTask(await request(taskUrl), name, limits);
}

/** The task of these bytes; throws unless they have the hash `name` and are within the user's limits. */
export async function readTask(bytes, name, limits = {}) {
  const id = await sha256(bytes);
  if (toHex(id) !== name) throw new ShuffledpError("changed");
  const task = Object.assign(decodeTask(bytes), { id, name });
  requireKnown(task.asked);
  if (task.dummies?.startsWith("poisson")) throw new ShuffledpError("unsupported", "devices send dummies");
  const { maxEpsilon0 = Infinity, leastBatch = task.dummies ? 1 : 2 } = limits;
  const { asked: { epsilon0 }, minBatch } = task;
  if (epsilon0 > 0 && epsilon0 <= maxEpsilon0 && minBatch >= leastBatch) return task;
  throw new ShuffledpError("limits", `epsilon0 = ${epsilon0 ?? "infinite"}, batches of at least ${minBatch} reports`);
}

function nameOf(taskUrl) {
  const name = /^https?:\/\/[^?#]*\/tasks\/([0-9a-f]{64})$/.exec(taskUrl)?.[1];
  if (!name) throw new ShuffledpError("address", taskUrl);
  return name;
}

const found = (name) => update(name, (record) => record);

const receipt = ({ id, randomized, epoch, answer = null }) =>
  ({ id: toHex(id), randomized: toHex(randomized), epoch, answer });

async function draw(task, value, code) {
  if (value === undefined) throw new ShuffledpError("no-report");
  const answer = encode(task.asked, value);
  const epoch = Math.floor((Date.now() / 1000 - task.start) / task.epochSeconds);
  if (epoch < 0) throw new ShuffledpError("early");
  if (epoch >= task.numEpochs) throw new ShuffledpError("over");
  const written = await new Response(await get(task, "shuffler", "law")).json().catch(() => null);
  const law = await checkedLaw(task.asked, written);
  const id = await reportId(task, epoch, code);
  // Drawn inside the transaction: of two tabs one draws, and the other finds its report.
  return update(task.name, (record) => record ?? { id, epoch, randomized: randomize(task.asked, law, answer) });
}

async function send(task, record, onState, patienceSeconds) {
  const giveUp = Date.now() + 1000 * patienceSeconds;
  for (let wait = 500; ; wait = Math.min(2 * wait, 30_000)) {
    onState("sending", receipt(record));
    try {
      return await sendOnce(task, record);
    } catch (error) {
      if (error.code !== "unreachable") throw error;
      if (Date.now() + wait > giveUp) throw new ShuffledpError("offline", error.detail);
      onState("waiting", { seconds: wait / 1000, problem: error.detail });
    }
    await new Promise((resolve) => setTimeout(resolve, wait * (0.5 + Math.random() / 2)));
  }
}

async function sendOnce(task, record) {
  const keys = await chosenKeys(task, record);
  const body = await sealReport(task, record, ...keys, await sealer(task.seal));
  const [place, ...more] = await request(`${addressOf(task, "shuffler")}/reports`, body);
  const answer = ANSWERS[place];
  if (more.length || !answer) throw new ShuffledpError("malformed", "the shuffler's answer");
  const sent = await update(task.name, (kept) => ({ ...record, ...kept, answer }));
  if (FINAL.includes(answer)) return sent;
  throw new ShuffledpError(answer === "not-admitted" ? answer : "unreachable", `the shuffler says ${answer}`);
}

/** The keys to seal to, of lists that are signed, current, no older than seen before, and the same at both servers. */
export async function chosenKeys(task, record) {
  const lists = [["shuffler", "keys"], ["analyzer", "keys"], ["shuffler", "analyzer_keys"]];
  const [shuffler, analyzer, copy] = await Promise.all(lists.map((each) => get(task, ...each)));
  if (toHex(analyzer) !== toHex(copy)) throw new ShuffledpError("keys", "the servers name different ones");
  const chosen = [];
  for (const [role, text, first] of [["shuffler", shuffler, record.epoch], ["analyzer", analyzer, 0]]) {
    const list = await decodeKeys(text, task, role);
    chosen.push(keyFrom(list, record.epoch, first));
    const { serials = {} } = (await found(task.name)) ?? {};
    if (list.serial < (serials[role] ?? 0)) throw new ShuffledpError("keys", `an old list of the ${role}'s`);
    await update(task.name, (kept) => ({ ...record, ...kept, serials: { ...serials, [role]: list.serial } }));
  }
  return chosen;
}

/** The key of a list for an epoch, begun in epoch `first` or later: the newest. */
export function keyFrom(list, epoch, first, now = Date.now() / 1000) {
  if (now > list.notAfter) throw new ShuffledpError("keys", "expired by this device's clock");
  const begun = list.keys.filter((key) => key.firstEpoch >= first && key.firstEpoch <= epoch);
  if (!begun.length) throw new ShuffledpError("keys", "none for this time");
  return begun.reduce((newest, key) => (key.firstEpoch > newest.firstEpoch ? key : newest));
}

/** Seals texts by HPKE (RFC 9180) in base mode, with the task's way to encapsulate keys. */
export async function sealer(name) {
  // Large, and of few tasks: a file of its own beside this one.
  const kem = name === "hybrid" ? new (await import("./shuffledp-hybrid.js")).XWing() : new DhkemX25519HkdfSha256();
  const suite = new CipherSuite({ kem, kdf: new HkdfSha256(), aead: new Aes128Gcm() });
  const seal = async (text, publicKey, info) => {
    const recipientPublicKey = await suite.kem.deserializePublicKey(publicKey);
    const { enc, ct } = await suite.seal({ recipientPublicKey, info }, text);
    return concat(new Uint8Array(enc), new Uint8Array(ct));
  };
  return (...given) => seal(...given).catch((error) => {
    throw new ShuffledpError("browser", error.message);
  });
}

const addressOf = (task, role) => `${task[`${role}Url`].replace(/\/+$/, "")}/tasks/${task.name}`;

const get = (task, role, name) => request(`${addressOf(task, role)}/${name}`);

async function request(url, body) {
  const [method, { host }] = [body ? "POST" : "GET", new URL(url)];
  const signal = AbortSignal.timeout(30_000);
  const careful = { cache: "no-store", credentials: "omit", redirect: "error", referrerPolicy: "no-referrer" };
  let response;
  try {
    response = await fetch(url, { method, body, signal, ...careful });
    if (response.ok) return new Uint8Array(await response.arrayBuffer());
  } catch {
    throw new ShuffledpError("unreachable", `no connection to ${host}`);
  }
  const isWorthAgain = response.status >= 500 || [408, 425, 429].includes(response.status);
  throw new ShuffledpError(isWorthAgain ? "unreachable" : "refused", `${host} answers with status ${response.status}`);
}
