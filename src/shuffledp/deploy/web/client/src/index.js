// The client of a browser: `await report(taskUrl, value)`. See docs/guides/browser-client.md.
import { Aes128Gcm, CipherSuite, DhkemX25519HkdfSha256, HkdfSha256 } from "@hpke/core";
import { checkedLaw, encode, randomize, requireKnown } from "./randomize.js";
import { alone, update } from "./store.js";
import { ShuffledpError, concat, decodeKeys, decodeTask, reportId, sealReport, sha256, toHex } from "./wire.js";

export { ShuffledpError };

const MOST_TASK_BYTES = 1 << 18;
const MOST_KEYS_BYTES = 1 << 16;
const ANSWERS = ["accepted", "replayed", "late", "early", "unknown-key", "not-admitted"];
const FINAL = ["accepted", "replayed", "late"];

/** Sends a randomized report on `value`, once per task, and returns its id and bytes. */
export async function report(taskUrl, value, options = {}) {
  const { onState = () => {}, code, patienceSeconds = 60 } = options;
  const task = await fetchTask(taskUrl, options);
  onState("checked", describe(task));
  return alone(task.name, async () => {
    let record = await update(task.name, (kept) => kept);
    if (!record) record = await draw(task, value, code);
    else if (code && record.answer === "not-admitted") {
      const id = await reportId(task, record.epoch, code);
      record = await update(task.name, (kept) => ({ ...kept, id }));
    }
    onState("kept", receipt(record));
    if (!FINAL.includes(record.answer)) record = await send(task, record, onState, patienceSeconds);
    onState("done", receipt(record));
    return receipt(record);
  });
}

/** The receipt of the report that this browser keeps of a task, or null. */
export async function kept(taskUrl) {
  const record = await update(splitUrl(taskUrl).name, (found) => found);
  return record ? receipt(record) : null;
}

/** What a task asks and promises, for people to read. */
export function describe(task) {
  const { asked } = task;
  return {
    id: task.name,
    info: task.info,
    question: asked.text ?? "",
    kind: asked.question.kind,
    labels: asked.question.kind === "mean" ? [] : [...asked.labels],
    low: asked.question.low ?? asked.question.edges?.[0],
    high: asked.question.high ?? asked.question.edges?.at(-1),
    maxAnswers: asked.question.max_answers ?? 1,
    randomizer: asked.randomizer,
    epsilon0: asked.epsilon0,
    guarantees: [
      { holds: "shuffler", epsilon: Number(task.epsilon), delta: Number(task.delta), minBatch: task.minBatch, honestShare: task.honestPpm / 1e6, dummies: task.dummies ?? null },
      { holds: "always", epsilon: asked.epsilon0, delta: 0 },
    ],
    seal: task.seal,
    owner: { key: toHex(task.operatorKey), shuffler: task.shufflerUrl, analyzer: task.analyzerUrl },
    begins: new Date(task.start * 1000),
    ends: new Date((task.start + task.epochSeconds * task.numEpochs) * 1000),
  };
}

/** The task of a URL, if its bytes have the hash in the URL and this client can answer it. */
export async function fetchTask(taskUrl, limits = {}) {
  const { url, name } = splitUrl(taskUrl);
  const bytes = await get(url, MOST_TASK_BYTES);
  return readTask(bytes, name, limits);
}

/** The task of these bytes; throws unless they have the hash `name` and are within the user's limits. */
export async function readTask(bytes, name, { operatorKey, maxEpsilon0 = Infinity, leastBatch = 2 } = {}) {
  const id = await sha256(bytes);
  if (toHex(id) !== name) throw new ShuffledpError("changed", "The task is not the one that the address of this page names: somebody changed it. Nothing was sent; tell who runs the survey.");
  const task = Object.assign(decodeTask(bytes), { id, name });
  if (operatorKey && toHex(task.operatorKey) !== operatorKey) throw new ShuffledpError("forged", "The task is not of the operator named by this page: nothing was sent.");
  requireKnown(task.asked);
  if (task.dummies?.startsWith("poisson")) throw new ShuffledpError("unsupported", "The task has devices send dummies, which this page does not: answer it with shuffledp send.");
  const least = task.dummies && leastBatch === 2 ? 1 : leastBatch;
  if (!(task.asked.epsilon0 > 0 && task.asked.epsilon0 <= maxEpsilon0 && task.minBatch >= least)) {
    throw new ShuffledpError("limits", `The task asks for epsilon0 = ${task.asked.epsilon0 ?? "infinite"} and batches of at least ${task.minBatch} reports, beyond the limits of this page: nothing was sent.`);
  }
  return task;
}

function splitUrl(taskUrl) {
  const url = new URL(taskUrl, globalThis.location?.href);
  const name = /\/tasks\/([0-9a-f]{64})\/?$/.exec(url.pathname)?.[1];
  if (!name) throw new ShuffledpError("address", `The address of a task ends with /tasks/ and 64 hexadecimal digits; this is ${taskUrl}.`);
  return { url: url.href.replace(/\/$/, ""), name };
}

const receipt = ({ id, randomized, epoch, answer }) => ({ id: toHex(id), randomized: toHex(randomized), epoch, answer: answer ?? null });

async function draw(task, value, code) {
  if (value === undefined) throw new ShuffledpError("no-report", "There is no report to send: answer first.");
  const answer = encode(task.asked, value);
  const seconds = Date.now() / 1000 - task.start;
  const epoch = Math.floor(seconds / task.epochSeconds);
  if (epoch < 0) throw new ShuffledpError("early", "The survey has not begun: come back later, or check this device's clock.");
  if (epoch >= task.numEpochs) throw new ShuffledpError("over", "The survey is over, by this device's clock: nothing was sent.");
  const law = await checkedLaw(task.asked, JSON.parse(new TextDecoder().decode(await get(`${address(task, "shuffler")}/law`, MOST_KEYS_BYTES))));
  const id = await reportId(task, epoch, code);
  // Drawn inside the transaction: of two tabs one draws, and the other finds its report.
  return update(task.name, (found) => found ?? { id, epoch, randomized: randomize(task.asked, law, answer), serials: {} });
}

async function send(task, record, onState, patienceSeconds) {
  const giveUp = Date.now() + 1000 * patienceSeconds;
  for (let wait = 500; ; wait = Math.min(2 * wait, 30_000)) {
    let problem;
    try {
      onState("sending", receipt(record));
      const [shuffler, analyzer] = await chosenKeys(task, record.epoch);
      const body = await sealReport(task, record, shuffler, analyzer, await sealer(task.seal));
      const [place, ...more] = await request(`${address(task, "shuffler")}/reports`, body);
      const answer = ANSWERS[place];
      if (more.length || !answer) throw new ShuffledpError("malformed", "The shuffler's answer says nothing known: tell who runs the survey.");
      const kept = await update(task.name, (found) => ({ ...found, answer }));
      if (FINAL.includes(answer)) return kept;
      if (answer === "not-admitted") throw new ShuffledpError("not-admitted", "The survey takes reports of invited people only: give your code.");
      problem = answer;
    } catch (error) {
      if (error.code !== "offline") throw error;
      problem = error.message;
    }
    if (Date.now() + wait > giveUp) throw new ShuffledpError("offline", `The report is kept and has not arrived (${problem}): open this page again later, and it sends the same report.`);
    onState("waiting", { seconds: wait / 1000, problem });
    await new Promise((resolve) => setTimeout(resolve, wait * (0.5 + Math.random() / 2)));
  }
}

/** The keys to seal to, of lists that are signed, current, no older than seen before, and the same at both servers. */
export async function chosenKeys(task, epoch) {
  const at = (role, name) => get(`${address(task, role)}/${name}`, MOST_KEYS_BYTES);
  const texts = await Promise.all([at("shuffler", "keys"), at("analyzer", "keys"), at("shuffler", "analyzer_keys")]);
  if (toHex(texts[1]) !== toHex(texts[2])) throw new ShuffledpError("keys", "The two servers name different keys of the analyzer: nothing was sent; try again later, and tell who runs the survey if it stays so.");
  const lists = { shuffler: await decodeKeys(texts[0], task, "shuffler"), analyzer: await decodeKeys(texts[1], task, "analyzer") };
  requireCurrent(lists, Date.now() / 1000);
  await update(task.name, (found) => {
    for (const [role, list] of Object.entries(lists)) {
      if (list.serial < (found?.serials[role] ?? 0)) throw new ShuffledpError("keys", `An old list of the ${role}'s keys is put forward: nothing was sent; tell who runs the survey.`);
    }
    return found && { ...found, serials: { shuffler: lists.shuffler.serial, analyzer: lists.analyzer.serial } };
  });
  return [keyFrom(lists.shuffler, epoch, epoch), keyFrom(lists.analyzer, epoch, 0)];
}

export function requireCurrent(lists, now) {
  const role = Object.keys(lists).find((each) => now > lists[each].notAfter);
  if (role) throw new ShuffledpError("keys", `The ${role}'s keys have expired, by this device's clock: nothing was sent; check the clock, and tell who runs the survey.`);
}

export function keyFrom(list, epoch, first) {
  const begun = list.keys.filter((key) => key.firstEpoch >= first && key.firstEpoch <= epoch);
  if (!begun.length) throw new ShuffledpError("keys", "There is no key for this time: nothing was sent; tell who runs the survey.");
  return begun.reduce((newest, key) => (key.firstEpoch > newest.firstEpoch ? key : newest));
}

/** Seals texts by HPKE (RFC 9180) in base mode, with the task's way to encapsulate keys. */
export async function sealer(name) {
  // Large, and of few tasks: a file of its own beside this one.
  const kem = name === "hybrid" ? new (await import("./shuffledp-hybrid.js")).XWing() : new DhkemX25519HkdfSha256();
  const suite = new CipherSuite({ kem, kdf: new HkdfSha256(), aead: new Aes128Gcm() });
  return async (text, publicKey, info) => {
    try {
      const recipientPublicKey = await suite.kem.deserializePublicKey(publicKey);
      const context = await suite.createSenderContext({ recipientPublicKey, info });
      return concat(new Uint8Array(context.enc), new Uint8Array(await context.seal(text)));
    } catch (error) {
      throw new ShuffledpError("browser", `This browser cannot seal the report (${error.message}): update it, or use another one.`);
    }
  };
}

const address = (task, role) => `${task[`${role}Url`].replace(/\/+$/, "")}/tasks/${task.name}`;

async function get(url, most) {
  const bytes = await request(url);
  if (bytes.length > most) throw new ShuffledpError("malformed", `The answer of ${url} is larger than an honest one: nothing was sent.`);
  return bytes;
}

async function request(url, body) {
  let response;
  try {
    response = await fetch(url, {
      method: body ? "POST" : "GET", body, cache: "no-store", credentials: "omit", redirect: "error", referrerPolicy: "no-referrer",
    });
    if (response.ok) return new Uint8Array(await response.arrayBuffer());
  } catch (error) {
    throw new ShuffledpError("offline", `no connection to ${new URL(url).host}`);
  }
  const isWorthAgain = response.status >= 500 || [408, 425, 429].includes(response.status);
  throw new ShuffledpError(isWorthAgain ? "offline" : "refused", `${new URL(url).host} answers with status ${response.status}`);
}
