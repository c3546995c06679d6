// Messages of docs/explanation/deployment-format.md, read strictly: nothing missing, nothing left over.

/** What goes wrong, with a `code` for programs; the message is for people. */
export class ShuffledpError extends Error {
  constructor(code, message) {
    super(message);
    this.name = "ShuffledpError";
    this.code = code;
  }
}

const SUITES = { x25519: "002000010001", hybrid: "647a00010001" };
const KEY_SIZES = { x25519: 32, hybrid: 1216 };
const DECIMAL = /^[0-9]+(\.[0-9]+)?(e-?[0-9]{1,3})?$/;
const encoder = new TextEncoder();

export const utf8 = (text) => encoder.encode(text);
export const toHex = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
export const fromHex = (text) => Uint8Array.from(text.match(/../g) ?? [], (pair) => parseInt(pair, 16));

export function concat(...parts) {
  const joined = new Uint8Array(parts.reduce((size, part) => size + part.length, 0));
  let at = 0;
  for (const part of parts) {
    joined.set(part, at);
    at += part.length;
  }
  return joined;
}

/** A whole number as `size` bytes, most significant first. */
export function uint(value, size) {
  let rest = BigInt(value);
  const bytes = new Uint8Array(size);
  for (let at = size - 1; at >= 0; at -= 1, rest >>= 8n) bytes[at] = Number(rest & 255n);
  return bytes;
}

export async function sha256(bytes) {
  return new Uint8Array(await subtle().digest("SHA-256", bytes));
}

/** The browser's cryptography, which pages without encryption do not have. */
export function subtle() {
  if (globalThis.crypto?.subtle) return globalThis.crypto.subtle;
  throw new ShuffledpError("browser", "This page was not loaded over https, so the browser offers no cryptography to it: open its https address.");
}

class Reader {
  constructor(bytes, name) {
    Object.assign(this, { bytes, name, at: 0 });
  }

  fault(what, code = "malformed") {
    return new ShuffledpError(code, `The ${this.name} is not sound: ${what}. Nothing was sent; tell who runs the survey.`);
  }

  take(size) {
    if (this.at + size > this.bytes.length) throw this.fault("it ends too early");
    this.at += size;
    return this.bytes.subarray(this.at - size, this.at);
  }

  uint(size) {
    const value = this.take(size).reduce((sum, byte) => sum * 256n + BigInt(byte), 0n);
    return value <= Number.MAX_SAFE_INTEGER ? Number(value) : value;
  }

  opaque(size) {
    return this.take(this.uint(size));
  }

  text(size) {
    try {
      return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(this.opaque(size));
    } catch (error) {
      throw error instanceof ShuffledpError ? error : this.fault("a text in it is not UTF-8");
    }
  }

  finish() {
    if (this.at < this.bytes.length) throw this.fault("it goes on after its end");
  }
}

/** The fields of a task; `asked` is the question and the randomizer. */
export function decodeTask(bytes) {
  const reader = new Reader(bytes, "task");
  if (reader.uint(2) !== 1) throw reader.fault("this page is too old for it", "version");
  const task = { info: reader.text(1), shufflerUrl: reader.text(2), analyzerUrl: reader.text(2) };
  for (const [name, size] of [["start", 8], ["epochSeconds", 4], ["numEpochs", 4], ["minBatch", 8],
    ["honestPpm", 4], ["shortBatch", 1], ["reportBytes", 2]]) task[name] = reader.uint(size);
  try {
    task.asked = JSON.parse(reader.text(2));
  } catch (error) {
    throw error instanceof ShuffledpError ? error : reader.fault("its question is not JSON");
  }
  Object.assign(task, { epsilon: reader.text(1), delta: reader.text(1), operatorKey: reader.take(32).slice() });
  const extensions = new Reader(reader.opaque(2), "task");
  reader.finish();
  task.seal = "x25519";
  for (let last = 0; extensions.at < extensions.bytes.length;) {
    const type = extensions.uint(2);
    if (type <= last || type > 2) throw reader.fault("this page is too old for it", "version");
    task[type === 1 ? "dummies" : "seal"] = new TextDecoder().decode(extensions.opaque(2));
    last = type;
    if (type === 2 && task.seal !== "hybrid") throw reader.fault("this page is too old for it", "version");
  }
  const sane = task.epochSeconds >= 1 && task.numEpochs >= 1 && task.minBatch >= 1 && task.shortBatch < 2 &&
    task.honestPpm >= 1 && task.honestPpm <= 1e6 && task.info && Array.isArray(task.asked?.labels) &&
    DECIMAL.test(task.epsilon) && DECIMAL.test(task.delta) && task.delta > 0 && task.delta < 1 && SUITES[task.seal];
  if (!sane) throw reader.fault("a field is outside its range");
  return task;
}

/** A server's list of keys, if the task's operator has signed it for this role and task. */
export async function decodeKeys(bytes, task, role) {
  const reader = new Reader(bytes, "list of keys");
  const list = { serial: reader.uint(8), notAfter: reader.uint(8), keys: [] };
  const inner = new Reader(reader.opaque(2), "list of keys");
  const text = bytes.subarray(0, reader.at);
  const signature = reader.take(64);
  reader.finish();
  const signed = concat(utf8(`sdp1 keys ${role} `), task.id, text);
  if (!(await isSigned(signature, task.operatorKey, signed))) {
    throw reader.fault(`who runs the survey has not signed it as the ${role}'s`, "forged");
  }
  const [suite, size] = [SUITES[task.seal], KEY_SIZES[task.seal]];
  while (inner.at < inner.bytes.length) {
    const key = { firstEpoch: inner.uint(4), number: inner.uint(1) };
    if (toHex(inner.take(6)) !== suite) throw reader.fault("a key is of another suite than the task's");
    key.publicKey = inner.opaque(2).slice();
    if (key.publicKey.length !== size) throw reader.fault("a key has another size");
    list.keys.push(key);
  }
  const distinct = (name) => new Set(list.keys.map((key) => key[name])).size;
  if (!list.keys.length || distinct("number") < list.keys.length || distinct("firstEpoch") < list.keys.length) {
    throw reader.fault("it has no key, or two of one number or epoch");
  }
  return list;
}

async function isSigned(signature, publicKey, text) {
  let key;
  try {
    key = await subtle().importKey("raw", publicKey, "Ed25519", false, ["verify"]);
  } catch (error) {
    if (error instanceof ShuffledpError) throw error;
    if (error.name !== "NotSupportedError") return false;
    throw new ShuffledpError("browser", "This browser is too old to check who runs the survey (no Ed25519): update it, or use another one.");
  }
  return subtle().verify("Ed25519", key, signature, text);
}

/** A randomized report sealed to the analyzer, and around that to the shuffler, under its id. */
export async function sealReport(task, kept, shuffler, analyzer, seal) {
  const inner = await seal(kept.randomized, analyzer.publicKey, concat(utf8("sdp1a"), await sha256(task.id)));
  const bound = await sha256(concat(task.id, uint(kept.epoch, 4), kept.id));
  const text = concat(uint(analyzer.number, 1), inner);
  const sealed = await seal(text, shuffler.publicKey, concat(utf8("sdp1s"), bound));
  return concat(kept.id, uint(kept.epoch, 4), uint(shuffler.number, 1), sealed);
}

/** The id of a report: random, or that of a code in an epoch where the shuffler admits codes only. */
export async function reportId(task, epoch, code) {
  if (!code) return globalThis.crypto.getRandomValues(new Uint8Array(16));
  const bytes = await codeBytes(code);
  return (await sha256(concat(utf8("sdp1c"), bytes, task.id, uint(epoch, 4)))).slice(0, 16);
}

async function codeBytes(code) {
  const letters = code.toUpperCase().replace(/[\s-]/g, "").replaceAll("0", "O").replaceAll("1", "I");
  const places = Array.from(letters, (letter) => "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567".indexOf(letter));
  const number = places.reduce((sum, place) => sum * 32n + BigInt(Math.max(place, 0)), 0n);
  const bytes = uint(number, 20);
  const check = (await sha256(concat(utf8("sdp1 code"), bytes.subarray(0, 16)))).subarray(0, 4);
  if (letters.length !== 32 || places.includes(-1) || toHex(check) !== toHex(bytes.subarray(16))) {
    throw new ShuffledpError("code", "The code is not one of this survey's: copy all 32 letters of it.");
  }
  return bytes.subarray(0, 16);
}
