// The vectors of tests/vectors in Node; test_client.py runs this.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import test from "node:test";
import { checkedLaw, encode, randomize, requireKnown } from "../../../src/shuffledp/deploy/web/client/src/randomize.js";
import { decodeKeys, decodeTask, fromHex, reportId, sealReport, toHex } from "../../../src/shuffledp/deploy/web/client/src/wire.js";
import { keyFrom, readTask, sealer } from "../../../src/shuffledp/deploy/web/client/shuffledp.js";

const read = (name) => JSON.parse(readFileSync(new URL(`../../vectors/${name}`, import.meta.url)));
const REPORTS = read("reports.json");
const DEPLOYMENT = read("deployment.json");
const TASK = DEPLOYMENT.messages.task;
const REFUSED = ["privunit"];

const served = (law) => Object.fromEntries(Object.entries(law).map(([field, value]) => [field, typeof value === "string" ? value : value.toString(16)]));

for (const { task, law, draws } of REPORTS) {
  const name = `${task.randomizer}, k = ${task.labels.length}, epsilon0 = ${task.epsilon0}`;
  if (REFUSED.includes(task.randomizer)) {
    test(`${name} is refused`, () => assert.throws(() => requireKnown(task), { code: "unsupported" }));
    continue;
  }
  test(`reports of ${name}`, async () => {
    requireKnown(task);
    const checked = await checkedLaw(task, served(law));
    for (const { answer, words, report } of draws) {
      const left = words.split(" ").map((word) => BigInt(`0x${word}`));
      assert.equal(toHex(randomize(task, checked, answer, () => left.shift())), report);
      assert.equal(left.length, 0);
    }
  });
  test(`no other law than that of ${name}`, async () => {
    for (const field of Object.keys(law)) {
      const changed = { ...served(law), [field]: (BigInt(`0x${served(law)[field]}`) + 1n).toString(16) };
      await assert.rejects(checkedLaw(task, changed), { code: "forged" });
    }
    const isFree = task.epsilon0 < 1e-9; // a law that says nothing costs nothing
    if (!isFree) await assert.rejects(checkedLaw({ ...task, epsilon0: task.epsilon0 / 2 }, served(law)), { code: "forged" });
    await assert.rejects(checkedLaw(task, {}), { code: "forged" });
  });
}

test("what no page draws is refused", () => {
  const wrong = [
    ["k-rr", "mean"], ["duchi", "frequencies"], ["k-rr", "answer-sets"], ["split:k-rr", "frequencies"], ["k-rr", "columns"], ["k-rr", "distribution"],
    ["sampled:duchi", "mean"], ["sampled:duchi", "answer-sets"], ["other:k-rr", "answer-sets"], ["constructor", "frequencies"],
  ];
  for (const [randomizer, kind] of wrong) {
    assert.throws(() => requireKnown({ randomizer, question: { kind } }), { code: "unsupported" }, `${randomizer} ${kind}`);
  }
});

test("answers become places and numbers", () => {
  const labels = ["never", "naïve"];
  const asked = { question: { kind: "frequencies" }, labels };
  assert.equal(encode(asked, " nai\u0308ve "), 1);
  for (const value of ["always", "", null, undefined, 0, NaN]) assert.throws(() => encode(asked, value), { code: "value" });
  const mean = { question: { kind: "mean", low: -1, high: 2 }, labels: ["mean"] };
  assert.equal(encode(mean, "1.5"), 1.5);
  for (const value of ["", " ", null, undefined, NaN, Infinity, -1.01, 2.01, "x", []]) assert.throws(() => encode(mean, value), { code: "value" });
  const sets = { question: { kind: "answer-sets", max_answers: 1 }, labels };
  assert.deepEqual(encode(sets, ["naïve", "naïve"]), [1]);
  assert.deepEqual(encode(sets, []), []);
  for (const value of ["never", labels, ["x"]]) assert.throws(() => encode(sets, value), { code: "value" });
});

test("the task of the vectors says what it is", async () => {
  const task = await readTask(fromHex(TASK), DEPLOYMENT.task_id);
  assert.deepEqual({ ...task.asked, min_batch: task.minBatch, epsilon: task.epsilon }, DEPLOYMENT.task);
  assert.equal(task.name, DEPLOYMENT.task_id);
});

test("tasks and lists of keys that must be refused", async () => {
  const task = Object.assign(decodeTask(fromHex(TASK)), { id: fromHex(DEPLOYMENT.task_id) });
  await decodeKeys(fromHex(DEPLOYMENT.messages.keys), task, "shuffler");
  await assert.rejects(decodeKeys(fromHex(DEPLOYMENT.messages.keys), task, "analyzer"), { code: "forged" });
  for (const { kind, bytes, what, reason } of DEPLOYMENT.refused) {
    if (kind === "keys") await assert.rejects(decodeKeys(fromHex(bytes), task, "shuffler"), { code: reason }, what);
    if (kind === "task") await assert.rejects(readTask(fromHex(bytes), DEPLOYMENT.task_id), { code: "changed" }, what);
  }
  for (const size of [0, 1, 100, 294]) assert.throws(() => decodeTask(fromHex(TASK).subarray(0, size)), { code: "malformed" });
  assert.throws(() => decodeTask(fromHex(`${TASK}00`)), { code: "malformed" });
  // The numbers stand behind the version and three texts, with 1, 2 and 2 bytes for their sizes.
  const begin = 7 + [task.info, task.shufflerUrl, task.analyzerUrl].reduce((sum, text) => sum + Buffer.byteLength(text), 0);
  for (const [offset, size, value] of [[8, 4, 0], [12, 4, 0], [16, 8, 0], [24, 4, 0], [24, 4, 255], [28, 1, 2]]) {
    const bytes = fromHex(TASK).fill(value, begin + offset, begin + offset + size);
    assert.throws(() => decodeTask(bytes), { code: "malformed", detail: "the task: a field is out of range" });
  }
  for (const [right, wrong] of [[task.epsilon, "<"], [task.delta, "1"], [task.delta, "0"]]) {
    const bytes = fromHex(TASK);
    const place = Buffer.from(bytes.buffer).lastIndexOf(right);
    bytes.fill(wrong.charCodeAt(0), place, place + right.length);
    assert.throws(() => decodeTask(bytes), { code: "malformed", detail: "the task: a field is out of range" });
  }
  const unasked = fromHex(TASK);
  unasked[Buffer.from(unasked.buffer).indexOf('"question":{') + 1] = 0x51;
  assert.throws(() => decodeTask(unasked), { code: "malformed" });
  assert.throws(() => decodeTask(fromHex(`0002${TASK.slice(4)}`)), { code: "version" });
});

test("tasks and keys of the hybrid seal, which are not of the other", async () => {
  const [task, keys] = [DEPLOYMENT.hybrid.task, DEPLOYMENT.hybrid.keys].map(fromHex);
  const read = decodeTask(task);
  read.id = new Uint8Array(createHash("sha256").update(task).digest());
  assert.equal(read.seal, "hybrid");
  const [key] = (await decodeKeys(keys, read, "shuffler")).keys;
  assert.equal(key.publicKey.length, 1216);
  await assert.rejects(decodeKeys(keys, { ...read, seal: "x25519" }, "shuffler"), { code: "malformed" });
  for (const text of ["x25519", "hybrid2"]) {
    const other = fromHex(toHex(task).replace("000a000200066879627269" + "64", toHex(Uint8Array.of(0, 4 + text.length, 0, 2, 0, text.length)) + toHex(new TextEncoder().encode(text))));
    assert.throws(() => decodeTask(other), { code: "version" });
  }
});

test("limits of the user", async () => {
  const bytes = fromHex(TASK);
  await readTask(bytes, DEPLOYMENT.task_id, { maxEpsilon0: 2, leastBatch: 10000 });
  await assert.rejects(readTask(bytes, DEPLOYMENT.task_id, { maxEpsilon0: 1.9 }), { code: "limits" });
  await assert.rejects(readTask(bytes, DEPLOYMENT.task_id, { leastBatch: 10001 }), { code: "limits" });
});

test("the analyzer's key of each epoch, and lists that are over", async () => {
  const task = Object.assign(decodeTask(fromHex(TASK)), { id: fromHex(DEPLOYMENT.task_id) });
  const analyzer = await decodeKeys(fromHex(DEPLOYMENT.analyzer_keys.bytes), task, "analyzer");
  for (const [epoch, number] of DEPLOYMENT.analyzer_keys.number_by_epoch) assert.equal(keyFrom(analyzer, epoch, 0, analyzer.notAfter).number, number);
  const shuffler = await decodeKeys(fromHex(DEPLOYMENT.messages.keys), task, "shuffler");
  const first = shuffler.keys[0].firstEpoch;
  assert.throws(() => keyFrom(shuffler, first + 1, first + 1, shuffler.notAfter), { code: "keys", detail: "none for this time" });
  assert.equal(keyFrom(shuffler, first, first, shuffler.notAfter), shuffler.keys[0]);
  assert.throws(() => keyFrom(shuffler, first, first, shuffler.notAfter + 1), { code: "keys", detail: /expired/ });
});

test("a code gives the report's id", async () => {
  const task = { id: fromHex(DEPLOYMENT.task_id) };
  const { SHUFFLEDP_CODE: code, SHUFFLEDP_ID: id } = process.env;
  assert.equal(toHex(await reportId(task, 3, code)), id);
  await assert.rejects(reportId(task, 3, `${code.slice(1)}A`), { code: "code" });
  assert.equal((await reportId(task, 3)).length, 16);
});

test("nothing is sealed to a key of small order", async () => {
  const seal = await sealer("x25519");
  for (const key of ["00".repeat(32), `01${"00".repeat(31)}`]) await assert.rejects(seal(new Uint8Array(1), fromHex(key), new Uint8Array(0)), { code: "browser" });
});

test("sealed reports, printed for Python to open", async () => {
  const task = { id: fromHex(DEPLOYMENT.task_id) };
  for (const seal of (process.env.SHUFFLEDP_SEALS ?? "").split(" ").filter(Boolean)) {
    const [name, shuffler, analyzer] = seal.split(":");
    const keys = [shuffler, analyzer].map((key, number) => ({ number, publicKey: fromHex(key) }));
    const made = { id: new Uint8Array(16).fill(7), epoch: 3, randomized: fromHex("2a01") };
    console.log(`sealed ${name} ${toHex(await sealReport(task, made, ...keys, await sealer(name)))}`);
  }
});

const MODULES = new URL("../../../.cache/node/node_modules/", import.meta.url);
const core = await import(new URL("@hpke/core/esm/mod.js", MODULES)).catch(() => null);

test("seals that Python made are opened", { skip: core === null && "run make node" }, async () => {
  const { XWing } = await import("../../../src/shuffledp/deploy/web/client/shuffledp-hybrid.js");
  const { CipherSuite, Aes128Gcm, HkdfSha256, DhkemX25519HkdfSha256 } = core;
  for (const made of (process.env.SHUFFLEDP_SEALED ?? "").split(" ").filter(Boolean)) {
    const [name, key, sealed] = made.split(":");
    const kem = name === "hybrid" ? new XWing() : new DhkemX25519HkdfSha256();
    const suite = new CipherSuite({ kem, kdf: new HkdfSha256(), aead: new Aes128Gcm() });
    const recipientKey = await suite.kem.importKey("raw", fromHex(key).buffer, false);
    const bytes = fromHex(sealed);
    const info = new TextEncoder().encode("info");
    const context = await suite.createRecipientContext({ recipientKey, info, enc: bytes.slice(0, kem.encSize) });
    assert.equal(new TextDecoder().decode(await context.open(bytes.slice(kem.encSize))), `text of ${name}`);
    console.log(`opened ${name}`);
  }
});
