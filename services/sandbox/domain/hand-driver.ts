import type { WayOut } from "./way-out.ts";

/** What a hand may use. All values are positive; the host's defaults are filled in. */
export type HandResources = {
  memoryBytes: number;
  cpuMillis: number;
  maxProcesses: number;
  diskBytes: number;
};

/** One tool call as a driver runs it. */
export type ToolCall = {
  name: string;
  /** JSON text of the input, as the caller sent it. */
  inputJson: string;
  timeoutMs: number;
};

/** What a tool call came to. */
export type ToolRun = {
  isError: boolean;
  text: string;
  exitCode: number | null;
  isTimedOut: boolean;
  isCancelled: boolean;
  /** False when it was cancelled before the tool began. */
  wasStarted: boolean;
  outputBytes: number;
};

/** What a driver can and cannot do on this host; `doctor` shows it. */
export type DriverCapabilities = {
  /** Every hand has a host user id of its own. */
  perHandUid: boolean;
  /** Why it has not; empty when it has. */
  sharedUidReason: string;
  /** Memory, processes and processor time of a hand as a whole are limited. */
  cgroups: boolean;
  /** Fields of Resources that this host cannot enforce. */
  unenforcedLimits: string[];
};

/** HandLostError says that a hand died while it was asked for something. */
export class HandLostError extends Error {
  override name = "HandLostError";
  /** True when the call had been handed over, so that it may have taken effect. */
  readonly wasStarted: boolean;

  constructor(message: string, wasStarted: boolean) {
    super(message);
    this.wasStarted = wasStarted;
  }
}

/** DriverUnavailableError says what a host lacks to isolate hands at all. */
export class DriverUnavailableError extends Error {
  override name = "DriverUnavailableError";
  readonly missing: string;

  constructor(missing: string, message: string) {
    super(message);
    this.missing = missing;
  }
}

/** A running hand as its driver sees it. */
export interface DrivenHand {
  /** Process id of the hand's first process on the host; 0 when it has none. */
  readonly hostPid: number;
  /** Resolves, with a reason, when the hand is dead; never rejects. */
  readonly ended: Promise<string>;
  /**
   * Runs one tool. Aborting the signal kills the command and everything it started; the promise still settles with
   * what it came to. Rejects with HandLostError, and with nothing else.
   */
  run(call: ToolCall, signal: AbortSignal): Promise<ToolRun>;
  /** Kills everything in the hand and removes its files. Safe to repeat. */
  destroy(): Promise<void>;
}

/** HandDriver makes hands of one kind. */
export interface HandDriver {
  readonly name: string;
  /** Tools that its hands offer. */
  readonly tools: readonly string[];
  /** Removes what a dead predecessor left, and proves that a hand can be made here. */
  start(): Promise<void>;
  capabilities(): DriverCapabilities;
  /**
   * Makes a hand; without a way out it reaches nothing. Rejects with DriverUnavailableError, or with any error when it
   * failed this time.
   */
  provision(handId: string, resources: HandResources, wayOut?: WayOut): Promise<DrivenHand>;
}
