// Randomizers of docs/explanation/report-encoding.md, draw by draw as in docs/reference_client.py.
import { ShuffledpError, concat, sha256, toHex, uint, utf8 } from "./wire.js";

const WORDS = 1n << 64n;
const HALF = 1n << 32n;

/**
 * Of each randomizer the integers of its law, in the order of the fingerprint; how a report is drawn on a truth (the
 * place of one of k categories, or a share of a range); and the odds that a report is made of an answer that favours
 * it, and not of another one: epsilon0 is their logarithm.
 */
const RANDOMIZERS = {
  "k-rr": [["threshold"], response, responseOdds],
  "symmetric-unary": [["threshold"], unary((threshold) => WORDS - threshold), symmetricOdds],
  "optimized-unary": [["threshold"], unary(() => WORDS / 2n), bucketOdds],
  "optimized-local-hashing": [["num_buckets", "threshold"], hashed, bucketOdds],
  "hadamard-response": [["threshold"], hashed, bucketOdds],
  "subset-selection": [["subset_size", "threshold"], subset, subsetOdds],
  duchi: [["threshold"], duchi, bucketOdds],
  piecewise: [["num_steps", "window", "threshold"], piecewise, piecewiseOdds],
};

/** A fresh uniform 64-bit word of the browser's cryptographic generator. */
export const randomWord = () => crypto.getRandomValues(new BigUint64Array(1))[0];

const split = (name) => /^(?:(sampled|split):)?(.*)$/.exec(name).slice(1);

/** Throws where this client does not draw the task's reports. */
export function requireKnown({ question: { kind }, randomizer }) {
  const [way, base] = split(randomizer);
  const isNumber = ["duchi", "piecewise"].includes(base);
  const answered = isNumber ? "mean" : way ? "answer-sets" : "frequencies";
  if (Object.hasOwn(RANDOMIZERS, base) && kind === answered && !(way && isNumber)) return;
  throw new ShuffledpError("unsupported", `it asks for ${kind} with the randomizer ${randomizer}`);
}

/** The bytes of a fresh report on an answer in the form of `encode`. */
export function randomize({ question, labels, randomizer }, law, answer, next = randomWord) {
  const [way, base] = split(randomizer);
  const draw = RANDOMIZERS[base][1];
  if (question.kind === "mean") return draw((answer - question.low) / (question.high - question.low), 0n, law, next);
  const k = BigInt(labels.length);
  if (!way) return draw(BigInt(answer), k, law, next);
  let slots = [...new Set(answer)].sort((a, b) => b - a).map(BigInt);
  slots = slots.concat(Array(question.max_answers - slots.length).fill(k)); // no answer is a category, too
  if (way === "sampled") slots = [slots[uniformBelow(BigInt(slots.length), next)]];
  return concat(...slots.map((slot) => draw(slot, k + 1n, law, next)));
}

/** An answer as the place of a label, several, or a number; throws for values outside the domain. */
export function encode({ question: { kind, low, high, max_answers: most = 1 }, labels }, value) {
  if (kind === "mean") return numberOf(value, low, high);
  const isSet = kind === "answer-sets";
  const given = isSet ? value : [value];
  const places = Array.isArray(given) && [...new Set(given.map((each) => labels.indexOf(plain(each))))];
  if (places && places.length <= most && !places.includes(-1)) return isSet ? places : places[0];
  throw new ShuffledpError("value", `give ${isSet ? `at most ${most}` : "one"} of ${labels.join(", ")}`);
}

const plain = (label) => String(label).normalize("NFC").trim();

function numberOf(value, low, high) {
  const number = ["number", "string"].includes(typeof value) && plain(value) ? Number(value) : NaN;
  if (number >= low && number <= high) return number;
  throw new ShuffledpError("value", `give a number from ${low} to ${high}`);
}

/** The `size` bytes of a whole number, least significant first. */
const bytesOf = (number, size) => uint(number, Number(size)).reverse();

const littleEndian = (number, bound) => bytesOf(number, [1n, 2n, 4n, 8n].find((size) => bound <= 1n << (8n * size)));

function uniformBelow(bound, next) {
  if (bound === 1n) return 0n;
  const shift = BigInt(64 - (bound - 1n).toString(2).length);
  for (;;) {
    const number = next() >> shift;
    if (number < bound) return number;
  }
}

function respond(truth, k, threshold, word) {
  const step = word / threshold;
  return step < k - 1n ? (truth + 1n + step) % k : truth;
}

function response(truth, k, { threshold }, next) {
  const isBlind = threshold === WORDS / k; // epsilon0 = 0
  return littleEndian(isBlind ? next() % k : respond(truth, k, threshold, next()), k);
}

/** One bit a category; `own` gives the probability that the truth's is set. */
function unary(own) {
  return (truth, k, { threshold }, next) => {
    let row = 0n;
    for (let i = 0n; i < k; i += 1n) row |= BigInt(next() < (i === truth ? own(threshold) : threshold)) << i;
    return bytesOf(row, (k + 7n) / 8n);
  };
}

/** A hash to one of g buckets, and randomized response: the Hadamard response hashes to two. */
function hashed(truth, k, { num_buckets: g = 2n, threshold }, next) {
  let size = g;
  while (size < k) size *= g;
  const seed = uniformBelow(size, next);
  let bucket = 0n;
  for (let [rest, digits] = [seed, truth]; digits > 0n; rest /= g, digits /= g) bucket += (rest % g) * (digits % g);
  return littleEndian(seed * g + respond(bucket % g, g, threshold, next()), size * g);
}

/** Floyd's algorithm; the last of the others stands in the truth's place. */
function subset(answer, k, { subset_size: size, threshold }, next) {
  const isBlind = threshold === (WORDS * size) / k; // epsilon0 = 0: all k are others
  const [truth, numOthers] = isBlind ? [k, k] : [answer, k - 1n];
  const hasTruth = next() < threshold && !isBlind;
  const halves = halfWords(next);
  const other = (place) => (place === truth ? numOthers : place);
  let row = 0n;
  for (let bound = numOthers - size + 1n; bound <= numOthers; bound += 1n) {
    let member = other(scaledBelow(bound, halves));
    if (row === 0n && hasTruth) member = truth;
    else if ((row >> member) & 1n) member = other(bound - 1n);
    row |= 1n << member;
  }
  return bytesOf(row, (k + 7n) / 8n);
}

function* halfWords(next) {
  for (;;) {
    const word = next();
    yield word % HALF;
    yield word / HALF;
  }
}

function scaledBelow(bound, halves) {
  for (;;) {
    const product = halves.next().value * bound;
    if (product % HALF >= HALF % bound) return product / HALF;
  }
}

/** One of the two points of 0 ... m around a share of m: the share on average. */
function gridPoint(share, numSteps, next) {
  const position = share * Number(numSteps);
  const below = Math.floor(position);
  return BigInt(below) + BigInt(next() < BigInt(Math.floor((position - below) * 2 ** 64)));
}

function duchi(share, k, { threshold }, next) {
  return bytesOf(gridPoint(share, 1n, next) ^ BigInt(next() < threshold), 1n);
}

function piecewise(share, k, { num_steps: numSteps, window, threshold }, next) {
  const point = gridPoint(share, numSteps, next);
  const [word, border] = [next(), numSteps * threshold];
  if (word >= border) return bytesOf(point + (word - border) / ((WORDS - border) / window), 2n);
  const report = word / threshold;
  return bytesOf(report < point ? report : report + window, 2n);
}

function bucketOdds(k, { num_buckets: g = 2n, threshold }) {
  return [WORDS - (g - 1n) * threshold, threshold];
}

function responseOdds(k, { threshold }) {
  return threshold === WORDS / k ? [1n, 1n] : bucketOdds(k, { num_buckets: k, threshold });
}

/** Two answers differ in two bits. */
function symmetricOdds(k, { threshold }) {
  return [(WORDS - threshold) ** 2n, threshold ** 2n];
}

function subsetOdds(k, { subset_size: size, threshold }) {
  return threshold === (WORDS * size) / k ? [1n, 1n] : [threshold * (k - size), (WORDS - threshold) * size];
}

function piecewiseOdds(k, { num_steps: numSteps, window, threshold }) {
  const rest = WORDS - numSteps * threshold;
  return rest % window === 0n ? [rest / window, threshold] : [0n, 0n];
}

/** The integers of a law as the shuffler serves them: checked against the task's fingerprint and epsilon0. */
export async function checkedLaw(asked, written) {
  const [fields] = RANDOMIZERS[split(asked.randomizer)[1]];
  const integer = (field) => BigInt(`0x${/^[0-9a-f]{1,16}$/.exec(written?.[field])?.[0] ?? 0}`);
  const law = Object.fromEntries(fields.map((field) => [field, integer(field)]));
  const isTheTasks = (await fingerprint(asked, law)) === asked.fingerprint;
  if (isTheTasks && loss(asked, law) <= asked.epsilon0 * (1 + 1e-12)) return law;
  throw new ShuffledpError("forged", isTheTasks ? "a randomizer of a larger epsilon0" : "another randomizer");
}

async function fingerprint({ question, labels, randomizer }, law) {
  const [way, name] = split(randomizer);
  const span = () => ["span", `${floatHex(question.low)}..${floatHex(question.high)}`];
  const first = question.kind === "mean" ? span() : ["k", labels.length + (way ? 1 : 0)];
  const base = await fingerprintOf(name, [first, ...Object.entries(law)]);
  const outer = [["base", base], ["k", labels.length], ["max_answers", question.max_answers]];
  return way ? fingerprintOf(randomizer, outer) : base;
}

async function fingerprintOf(name, parameters) {
  const stated = parameters.map(([key, value]) => `${key}=${value}`).join("/");
  return toHex(await sha256(utf8(`shuffledp local randomizer/${name}/${stated}/${WORDS}`))).slice(0, 32);
}

/** A double as Python's float.hex prints it. */
function floatHex(value) {
  if (value === 0) return "0x0.0p+0";
  const bits = new BigUint64Array(new Float64Array([value]).buffer)[0];
  const exponent = Number((bits >> 52n) & 2047n);
  const digits = (bits & ((1n << 52n) - 1n)).toString(16).padStart(13, "0");
  const power = Math.max(exponent, 1) - 1023;
  return `${value < 0 ? "-" : ""}0x${exponent ? 1 : 0}.${digits}p${power < 0 ? "" : "+"}${power}`;
}

/** epsilon0 of a law: the logarithm of its largest likelihood ratio; infinite where no law has these integers. */
function loss({ question, labels, randomizer }, law) {
  const [way, name] = split(randomizer);
  const [more, less] = RANDOMIZERS[name][2](BigInt(labels.length + (way ? 1 : 0)), law);
  if (!(more >= less && less > 0n)) return Infinity;
  return Math.log1p(Number(more - less) / Number(less)) * (way === "split" ? question.max_answers : 1);
}
