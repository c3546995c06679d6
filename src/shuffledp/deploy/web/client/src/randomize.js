// Randomizers of docs/explanation/report-encoding.md, draw by draw as in docs/reference_client.py.
import { ShuffledpError, concat, sha256, toHex, utf8 } from "./wire.js";

const WORDS = 1n << 64n;

const LAW_FIELDS = {
  "k-rr": ["threshold"],
  "symmetric-unary": ["threshold"],
  "optimized-unary": ["threshold"],
  "optimized-local-hashing": ["num_buckets", "threshold"],
  "hadamard-response": ["threshold"],
  "subset-selection": ["subset_size", "threshold"],
  duchi: ["threshold"],
  piecewise: ["num_steps", "window", "threshold"],
};

/** A fresh uniform 64-bit word of the browser's cryptographic generator. */
export const randomWord = () => globalThis.crypto.getRandomValues(new BigUint64Array(1))[0];

const split = (name) => (name.includes(":") ? name.split(":") : ["", name]);

/** Throws where this client does not draw the task's reports. */
export function requireKnown(asked) {
  const [way, base] = split(asked.randomizer);
  const kinds = way ? ["answer-sets"] : ["frequencies", "distribution", "mean"];
  const isNumber = ["duchi", "piecewise"].includes(base);
  const fits = isNumber ? asked.question.kind === "mean" && !way : asked.question.kind !== "mean";
  if (["", "sampled", "split"].includes(way) && LAW_FIELDS[base] && kinds.includes(asked.question.kind) && fits) return;
  throw new ShuffledpError("unsupported", `This page cannot answer a question of the kind ${asked.question.kind} with the randomizer ${asked.randomizer}: answer it with shuffledp send.`);
}

/** The bytes of a fresh report on an answer in the form of `encode`. */
export function randomize(asked, law, answer, nextWord = randomWord) {
  const [way, base] = split(asked.randomizer);
  const question = asked.question;
  if (base === "duchi") return duchi(question, law, answer, nextWord);
  if (base === "piecewise") return piecewise(question, law, answer, nextWord);
  const k = asked.labels.length;
  if (!way) return category(base, answer, k, law, nextWord);
  let slots = [...new Set(answer)].sort((a, b) => b - a);
  slots = slots.concat(Array(question.max_answers - slots.length).fill(k));
  if (way === "sampled") slots = [slots[Number(uniformBelow(BigInt(slots.length), nextWord))]];
  return concat(...slots.map((slot) => category(base, slot, k + 1, law, nextWord)));
}

/** An answer as places of labels, or as the number; throws for values outside the domain. */
export function encode(asked, value) {
  const { question, labels } = asked;
  const refuse = (range) => new ShuffledpError("value", `The answer is not ${range}.`);
  const place = (label) => {
    const found = labels.indexOf(String(label).normalize("NFC").trim());
    if (found < 0) throw refuse(`one of ${labels.slice(0, 10).join(", ")}${labels.length > 10 ? ", ..." : ""}`);
    return found;
  };
  const number = (low, high) => {
    const isBlank = value === null || (typeof value !== "number" && String(value).trim() === "");
    if (isBlank || !(Number(value) >= low && Number(value) <= high)) throw refuse(`a number from ${low} to ${high}`);
    return Number(value);
  };
  if (question.kind === "mean") return number(question.low, question.high);
  if (question.kind === "distribution") {
    const edges = question.edges;
    const answer = number(edges[0], edges.at(-1));
    return Math.min(edges.filter((edge) => edge <= answer).length, labels.length) - 1;
  }
  if (question.kind !== "answer-sets") return place(value);
  if (!Array.isArray(value)) throw refuse("a list of answers");
  const places = [...new Set(value.map(place))];
  if (places.length > question.max_answers) throw refuse(`a list of at most ${question.max_answers} answers`);
  return places;
}

function uniformBelow(bound, nextWord) {
  const numBits = BigInt(bound === 1n ? 0 : (bound - 1n).toString(2).length);
  if (numBits === 0n) return 0n;
  for (;;) {
    const number = nextWord() >> (64n - numBits);
    if (number < bound) return number;
  }
}

function littleEndian(number, bound) {
  const size = [1n, 2n, 4n, 8n].find((bytes) => bound <= 1n << (8n * bytes));
  return Uint8Array.from({ length: Number(size) }, (_, at) => Number((number >> BigInt(8 * at)) & 255n));
}

function respond(truth, k, threshold, word) {
  const step = word / threshold;
  return step < k - 1n ? (truth + 1n + step) % k : truth;
}

function category(name, truth, size, law, nextWord) {
  const [x, k, threshold] = [BigInt(truth), BigInt(size), law.threshold];
  switch (name) {
    case "k-rr": {
      const word = nextWord();
      const isBlind = threshold === WORDS / k; // epsilon0 = 0
      return littleEndian(isBlind ? word % k : respond(x, k, threshold, word), k);
    }
    case "symmetric-unary":
      return randomBits(truth, size, WORDS - threshold, threshold, nextWord);
    case "optimized-unary":
      return randomBits(truth, size, WORDS / 2n, threshold, nextWord);
    case "subset-selection":
      return subset(truth, size, law, nextWord);
    default:
      return hashed(x, k, name === "hadamard-response" ? 2n : law.num_buckets, threshold, nextWord);
  }
}

function randomBits(truth, k, own, other, nextWord) {
  const row = new Uint8Array(Math.ceil(k / 8));
  for (let i = 0; i < k; i += 1) if (nextWord() < (i === truth ? own : other)) row[i >> 3] |= 1 << (i & 7);
  return row;
}

function hashed(truth, k, g, threshold, nextWord) {
  let size = g;
  while (size < k) size *= g;
  const seed = uniformBelow(size, nextWord);
  let bucket = 0n;
  for (let [rest, digits] = [seed, truth]; digits > 0n; rest /= g, digits /= g) bucket += (rest % g) * (digits % g);
  return littleEndian(seed * g + respond(bucket % g, g, threshold, nextWord()), size * g);
}

/** Floyd's algorithm; the last of the others stands in the truth's place. */
function subset(answer, k, law, nextWord) {
  const size = Number(law.subset_size);
  const isBlind = law.threshold === (WORDS * law.subset_size) / BigInt(k); // epsilon0 = 0
  const [truth, numOthers] = isBlind ? [k, k] : [answer, k - 1];
  const hasTruth = nextWord() < law.threshold && !isBlind;
  const row = new Uint8Array(Math.ceil(k / 8));
  let upper = null;
  const half = () => {
    if (upper !== null) {
      const last = upper;
      upper = null;
      return last;
    }
    const word = nextWord();
    upper = word >> 32n;
    return word & 0xffffffffn;
  };
  const below = (bound) => {
    for (;;) {
      const product = half() * BigInt(bound);
      if ((product & 0xffffffffn) >= (1n << 32n) % BigInt(bound)) return Number(product >> 32n);
    }
  };
  for (let step = 0; step < size; step += 1) {
    const bound = numOthers - size + 1 + step;
    const place = below(bound);
    let member = place === truth ? numOthers : place;
    if (step === 0 && hasTruth) member = truth;
    else if ((row[member >> 3] >> (member & 7)) & 1) member = bound - 1 === truth ? numOthers : bound - 1;
    row[member >> 3] |= 1 << (member & 7);
  }
  return row;
}

function gridPoint({ low, high }, value, numSteps, nextWord) {
  const width = high - low;
  const distance = value - low < width * 2 ** -90 ? 0 : value - low;
  const position = (distance / width) * numSteps;
  const below = Math.floor(position);
  return nextWord() < BigInt(Math.floor((position - below) * 2 ** 64)) ? below + 1 : below;
}

function duchi(question, law, value, nextWord) {
  const end = gridPoint(question, value, 1, nextWord);
  return Uint8Array.of(nextWord() < law.threshold ? 1 - end : end);
}

function piecewise(question, law, value, nextWord) {
  const point = BigInt(gridPoint(question, value, Number(law.num_steps), nextWord));
  const [word, border] = [nextWord(), law.num_steps * law.threshold];
  let report;
  if (word >= border) report = point + (word - border) / ((WORDS - border) / law.window);
  else {
    report = word / law.threshold;
    if (report >= point) report += law.window;
  }
  return littleEndian(report, 1n << 16n);
}

/** The integers of a law as the shuffler serves them: checked against the task's fingerprint and epsilon0. */
export async function checkedLaw(asked, written) {
  const [way, name] = split(asked.randomizer);
  const law = {};
  for (const field of LAW_FIELDS[name]) {
    if (!/^[0-9a-f]{1,16}$/.test(written?.[field])) throw wrong(`${field} is missing`);
    law[field] = BigInt(`0x${written[field]}`);
  }
  const found = await fingerprint(asked, way, name, law);
  if (found !== asked.fingerprint) throw wrong("its numbers are not the task's");
  const cost = loss(asked, way, name, law);
  if (!(cost <= asked.epsilon0 * (1 + 1e-12))) throw wrong("it is less private than the task says");
  return law;
}

const wrong = (what) => new ShuffledpError("forged", `The law by which answers are randomized is not sound: ${what}. Nothing was sent; tell who runs the survey.`);

function fingerprint(asked, way, name, law) {
  const { question, labels } = asked;
  const own = LAW_FIELDS[name].map((field) => [field, law[field]]);
  if (question.kind === "mean") {
    return fingerprintOf(name, [["span", `${floatHex(question.low)}..${floatHex(question.high)}`], ...own]);
  }
  if (!way) return fingerprintOf(name, [["k", labels.length], ...own]);
  const base = fingerprintOf(name, [["k", labels.length + 1], ...own]);
  return base.then((found) => fingerprintOf(`${way}:${name}`, [["base", found], ["k", labels.length], ["max_answers", question.max_answers]]));
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

/** epsilon0 of a law: the logarithm of its largest likelihood ratio. */
function loss(asked, way, name, law) {
  const k = BigInt(asked.labels.length + (way ? 1 : 0));
  const [more, less] = odds(name, k, law);
  if (!(more >= less && less > 0n)) throw wrong("no law has these numbers");
  const found = Math.log1p(Number(more - less) / Number(less)) * (name === "symmetric-unary" ? 2 : 1);
  return way === "split" ? found * asked.question.max_answers : found;
}

function odds(name, k, law) {
  const { threshold } = law;
  if (name === "k-rr" || name === "optimized-local-hashing") {
    if (name === "k-rr" && threshold === WORDS / k) return [1n, 1n];
    return [WORDS - ((law.num_buckets ?? k) - 1n) * threshold, threshold];
  }
  if (name === "subset-selection") {
    const size = law.subset_size;
    return threshold === (WORDS * size) / k ? [1n, 1n] : [threshold * (k - size), (WORDS - threshold) * size];
  }
  if (name === "piecewise") {
    const rest = WORDS - law.num_steps * threshold;
    return rest % law.window === 0n ? [rest / law.window, threshold] : [0n, 0n];
  }
  return [WORDS - threshold, threshold];
}
