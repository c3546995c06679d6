/** A report as this browser keeps it; `id` and `randomized` are hexadecimal. */
export interface Receipt {
  id: string;
  randomized: string;
  epoch: number;
  /** What the shuffler said last: "accepted" and "replayed" mean that it has the report. */
  answer: "accepted" | "replayed" | "late" | "early" | "unknown-key" | "not-admitted" | null;
}

/** What a task asks and promises, as its bytes say it. */
export interface Task {
  /** SHA-256 of the task, hexadecimal. */
  readonly name: string;
  readonly info: string;
  readonly asked: {
    readonly text?: string;
    readonly question: {
      readonly kind: "frequencies" | "mean" | "answer-sets";
      /** Limits of a number. */
      readonly low?: number;
      readonly high?: number;
      readonly max_answers?: number;
    };
    /** Possible answers. */
    readonly labels: string[];
    readonly randomizer: string;
    /** Local privacy loss, checked here before anything is drawn. */
    readonly epsilon0: number;
  };
  /** Privacy loss with a chance of `delta` of an exception, if the shuffler does its job: by the operator's word. */
  readonly epsilon: string;
  readonly delta: string;
  readonly minBatch: number | bigint;
  readonly honestPpm: number;
  readonly dummies?: string;
  readonly seal: "x25519" | "hybrid";
  readonly operatorKey: Uint8Array;
  readonly shufflerUrl: string;
  readonly analyzerUrl: string;
  /** Seconds since 1970 of the first epoch, seconds of each, and their number. */
  readonly start: number | bigint;
  readonly epochSeconds: number;
  readonly numEpochs: number;
}

export interface Limits {
  maxEpsilon0?: number;
  leastBatch?: number;
}

export interface Options extends Limits {
  /** "checked" comes with the Task, "waiting" with seconds and problem, the others with a Receipt. */
  onState?: (state: "checked" | "kept" | "sending" | "waiting", about: any) => void;
  /** Of surveys for invited people. */
  code?: string;
  patienceSeconds?: number;
}

export type Code =
  | "address" | "browser" | "changed" | "code" | "early" | "forged" | "keys" | "limits" | "malformed" | "no-report"
  | "not-admitted" | "offline" | "over" | "refused" | "storage" | "unreachable" | "unsupported" | "value" | "version";

export class ShuffledpError extends Error {
  code: Code;
  /** What it was exactly, where there is more to say. */
  detail?: string;
}

/**
 * Randomizes an answer once, keeps the report, and sends it until it has arrived; later calls send the same
 * report, whatever the value. Without a value it sends what is kept. The value is never sent or kept.
 */
export function report(taskUrl: string, value?: string | number | string[], options?: Options): Promise<Receipt>;
/** The receipt of the report that this browser keeps of a task, or null. */
export function kept(taskUrl: string): Promise<Receipt | null>;
export function fetchTask(taskUrl: string, limits?: Limits): Promise<Task>;
export function readTask(bytes: Uint8Array, name: string, limits?: Limits): Promise<Task>;
