/** A report as this browser keeps it; `id` and `randomized` are hexadecimal. */
export interface Receipt {
  id: string;
  randomized: string;
  epoch: number;
  /** What the shuffler said last: "accepted" and "replayed" mean that it has the report. */
  answer: "accepted" | "replayed" | "late" | "early" | "unknown-key" | "not-admitted" | null;
}

/** What a task asks and promises. */
export interface Description {
  /** SHA-256 of the task, hexadecimal. */
  id: string;
  info: string;
  question: string;
  kind: "frequencies" | "distribution" | "mean" | "answer-sets";
  /** Possible answers; empty for a number. */
  labels: string[];
  low?: number;
  high?: number;
  maxAnswers: number;
  randomizer: string;
  epsilon0: number;
  /** The first holds if the shuffler does its job, by the operator's word; the second always, checked here. */
  guarantees: [
    { holds: "shuffler"; epsilon: number; delta: number; minBatch: number; honestShare: number; dummies: string | null },
    { holds: "always"; epsilon: number; delta: 0 },
  ];
  seal: "x25519" | "hybrid";
  owner: { key: string; shuffler: string; analyzer: string };
  begins: Date;
  ends: Date;
}

export interface Limits {
  /** Hexadecimal Ed25519 key of the only operator whose tasks are answered; by default any. */
  operatorKey?: string;
  maxEpsilon0?: number;
  leastBatch?: number;
}

export interface Options extends Limits {
  /** "checked" comes with a Description, "waiting" with seconds and problem, all others with a Receipt. */
  onState?: (state: "checked" | "kept" | "sending" | "waiting" | "done", detail: any) => void;
  /** Of surveys for invited people. */
  code?: string;
  patienceSeconds?: number;
}

export interface Task {
  readonly name: string;
}

export type Code =
  | "address" | "browser" | "changed" | "code" | "early" | "forged" | "keys" | "limits" | "malformed" | "no-report"
  | "not-admitted" | "offline" | "over" | "refused" | "storage" | "unsupported" | "value" | "version";

export class ShuffledpError extends Error {
  code: Code;
}

/**
 * Randomizes an answer once, keeps the report, and sends it until it has arrived; later calls send the same
 * report, whatever the value. Without a value it sends what is kept. The value is never sent or kept.
 */
export function report(taskUrl: string, value?: string | number | string[], options?: Options): Promise<Receipt>;
/** The receipt of the report that this browser keeps of a task, or null. */
export function kept(taskUrl: string): Promise<Receipt | null>;
export function fetchTask(taskUrl: string, limits?: Limits): Promise<Task>;
export function readTask(bytes: Uint8Array, id: string, limits?: Limits): Promise<Task>;
export function describe(task: Task): Description;
