// Messages of docs/explanation/deployment-format.md, read strictly: nothing missing, nothing left over.
import messages from "./messages.json" with { type: "json" };

/** What goes wrong, with a `code` for programs; the message is for people. */
export class ShuffledpError extends Error {
  constructor(code, detail) {
    super(detail ? `${messages[code]} (${detail})` : messages[code]);
    Object.assign(this, { name: "ShuffledpError", code, detail });
  }
}

// The bytes that name a suite, and the size of its public keys.
const SUITES = { x25519: ["002000010001", 32], hybrid: ["647a00010001", 1216] };
const LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

export const utf8 = (text) => new TextEncoder().encode(text);
export const toHex = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
export const fromHex = (text) => Uint8Array.from(text.match(/../g) ?? [], (pair) => parseInt(pair, 16));
export const concat = (...parts) => Uint8Array.from(parts.flatMap((part) => [...part]));

/** A whole number as `size` bytes, most significant first. */
export const uint = (value, size) => fromHex(value.toString(16).padStart(2 * size, "0"));

export async function sha256(bytes) {
  const subtle = globalThis.crypto?.subtle;
  if (!subtle) throw new ShuffledpError("browser", "it does so on pages with https only: open that address");
  return new Uint8Array(await subtle.digest("SHA-256", bytes));
}

/** Takes fields from the front of bytes, and leaves the others. */
class Reader {
  constructor(bytes) {
    this.left = bytes;
  }

  take(size) {
    if (size > this.left.length) throw new RangeError("it ends too early");
    const taken = this.left.slice(0, size);
    this.left = this.left.subarray(size);
    return taken;
  }

  uint(size) {
    const value = BigInt(`0x${toHex(this.take(size))}`);
    return value <= Number.MAX_SAFE_INTEGER ? Number(value) : value;
  }

  opaque(size) {
    return this.take(this.uint(size));
  }

  text(size) {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(this.opaque(size));
  }
}

/** What `decode` makes of a message, of all its bytes; whatever else it throws says what is wrong with them. */
function read(name, bytes, decode) {
  try {
    const reader = new Reader(bytes);
    const found = decode(reader);
    if (reader.left.length) throw new RangeError("it goes on after its end");
    return found;
  } catch (error) {
    throw error instanceof ShuffledpError ? error : new ShuffledpError("malformed", `${name}: ${error.message}`);
  }
}

/** The fields of a task; `asked` is the question and the randomizer. */
export function decodeTask(bytes) {
  return read("the task", bytes, (reader) => {
    if (reader.uint(2) !== 1) throw new ShuffledpError("version");
    const task = { info: reader.text(1), shufflerUrl: reader.text(2), analyzerUrl: reader.text(2) };
    for (const [name, size] of [["start", 8], ["epochSeconds", 4], ["numEpochs", 4], ["minBatch", 8],
      ["honestPpm", 4], ["shortBatch", 1], ["reportBytes", 2]]) task[name] = reader.uint(size);
    task.asked = JSON.parse(reader.text(2));
    Object.assign(task, { epsilon: reader.text(1), delta: reader.text(1), operatorKey: reader.take(32) });
    Object.assign(task, read("the task", reader.opaque(2), decodeExtensions));
    const isSane = task.info && task.epochSeconds && task.numEpochs && task.minBatch && task.shortBatch < 2 &&
      task.honestPpm && task.honestPpm <= 1e6 && Array.isArray(task.asked?.labels) && task.asked.question &&
      task.delta > 0 && task.delta < 1 &&
      [task.epsilon, task.delta].every((each) => /^[0-9]+(\.[0-9]+)?(e-?[0-9]{1,3})?$/.test(each));
    if (!isSane) throw new RangeError("a field is out of range");
    return task;
  });
}

function decodeExtensions(reader) {
  const found = { seal: "x25519" };
  for (let last = 0; reader.left.length;) {
    const [type, text] = [reader.uint(2), reader.text(2)];
    if (type <= last || type > 2 || (type === 2 && text !== "hybrid")) throw new ShuffledpError("version");
    found[type === 1 ? "dummies" : "seal"] = text;
    last = type;
  }
  return found;
}

/** A server's list of keys, if the task's operator has signed it for this role and task. */
export async function decodeKeys(bytes, task, role) {
  const name = `the ${role}'s list of keys`;
  const [serial, notAfter, listed, signature] = read(name, bytes, (reader) =>
    [reader.uint(8), reader.uint(8), reader.opaque(2), reader.take(64)]);
  const signed = concat(utf8(`sdp1 keys ${role} `), task.id, bytes.subarray(0, -64));
  if (!(await isSigned(signature, task.operatorKey, signed))) throw new ShuffledpError("forged", name);
  return { serial, notAfter, keys: read(name, listed, (reader) => decodeEach(reader, ...SUITES[task.seal])) };
}

function decodeEach(reader, suite, size) {
  const keys = [];
  while (reader.left.length) {
    const [firstEpoch, number, kind] = [reader.uint(4), reader.uint(1), toHex(reader.take(6))];
    const publicKey = reader.opaque(2);
    if (kind !== suite || publicKey.length !== size) throw new RangeError("a key is of another suite than the task's");
    keys.push({ firstEpoch, number, publicKey });
  }
  const isDistinct = (field) => new Set(keys.map((key) => key[field])).size === keys.length;
  if (keys.length && isDistinct("number") && isDistinct("firstEpoch")) return keys;
  throw new RangeError("it has no key, or two of one number or epoch");
}

async function isSigned(signature, publicKey, text) {
  const key = await crypto.subtle.importKey("raw", publicKey, "Ed25519", false, ["verify"]).catch((error) => {
    if (error.name === "NotSupportedError") throw new ShuffledpError("browser", "it has no Ed25519");
  });
  return Boolean(key) && crypto.subtle.verify("Ed25519", key, signature, text);
}

/** A randomized report sealed to the analyzer, and around that to the shuffler, under its id. */
export async function sealReport(task, kept, shuffler, analyzer, seal) {
  const inner = await seal(kept.randomized, analyzer.publicKey, concat(utf8("sdp1a"), await sha256(task.id)));
  const bound = await sha256(concat(task.id, uint(kept.epoch, 4), kept.id));
  const sealed = await seal(concat(uint(analyzer.number, 1), inner), shuffler.publicKey, concat(utf8("sdp1s"), bound));
  return concat(kept.id, uint(kept.epoch, 4), uint(shuffler.number, 1), sealed);
}

/** The id of a report: random, or that of a code in an epoch where the shuffler admits codes only. */
export async function reportId(task, epoch, code) {
  if (!code) return crypto.getRandomValues(new Uint8Array(16));
  const letters = code.toUpperCase().replace(/[\s-]/g, "").replaceAll("0", "O").replaceAll("1", "I");
  if (!/^[A-Z2-7]{32}$/.test(letters)) throw new ShuffledpError("code");
  const bytes = uint([...letters].reduce((sum, each) => sum * 32n + BigInt(LETTERS.indexOf(each)), 0n), 20);
  const secret = bytes.subarray(0, 16);
  const check = await sha256(concat(utf8("sdp1 code"), secret));
  if (toHex(check.subarray(0, 4)) !== toHex(bytes.subarray(16))) throw new ShuffledpError("code");
  return (await sha256(concat(utf8("sdp1c"), secret, task.id, uint(epoch, 4)))).slice(0, 16);
}
