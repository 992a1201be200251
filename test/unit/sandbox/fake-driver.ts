import type {
  ExecutionJournal,
  JournalEntry,
  RecordedHand,
} from "../../../services/sandbox/domain/execution-journal.ts";
import type { ExecutionResult } from "../../../services/sandbox/domain/execution-result.ts";
import type {
  DrivenHand,
  HandDriver,
  ToolCall,
  ToolRun,
} from "../../../services/sandbox/domain/hand-driver.ts";

/** A hand whose tools end when the test says so. */
export class FakeHand implements DrivenHand {
  readonly hostPid = 0;
  readonly calls: ToolCall[] = [];
  readonly #ended = Promise.withResolvers<string>();
  readonly runs: PromiseWithResolvers<ToolRun>[] = [];
  isDestroyed = false;

  get ended(): Promise<string> {
    return this.#ended.promise;
  }

  run(call: ToolCall, signal: AbortSignal): Promise<ToolRun> {
    this.calls.push(call);
    const run = Promise.withResolvers<ToolRun>();
    this.runs.push(run);
    signal.addEventListener("abort", () =>
      run.resolve({ ...okRun("stopped"), isError: true, isCancelled: true }),
    );
    return run.promise;
  }

  die(reason: string): void {
    this.#ended.resolve(reason);
  }

  async destroy(): Promise<void> {
    this.isDestroyed = true;
    this.die("it was destroyed");
  }
}

/** A driver that makes fake hands. */
export class FakeDriver implements HandDriver {
  readonly name = "fake";
  readonly tools = ["bash"];
  readonly hands: FakeHand[] = [];
  failure: Error | undefined;

  async start(): Promise<void> {}

  capabilities() {
    return { perHandUid: false, sharedUidReason: "fake", cgroups: false, unenforcedLimits: [] };
  }

  async provision(): Promise<DrivenHand> {
    await Promise.resolve();
    if (this.failure) throw this.failure;
    const hand = new FakeHand();
    this.hands.push(hand);
    return hand;
  }
}

/** A journal in memory that can fail. */
export class FakeJournal implements ExecutionJournal {
  readonly entries = new Map<string, JournalEntry>();
  readonly results = new Map<string, ExecutionResult>();
  readonly epochs = new Map<string, bigint>();
  hands: RecordedHand[] = [];
  failNext: "start" | "finish" | "epoch" | undefined;

  seenEpoch(sessionId: string): bigint {
    return this.epochs.get(sessionId) ?? 0n;
  }

  async raiseEpoch(sessionId: string, epoch: bigint): Promise<void> {
    this.#failIf("epoch");
    if (epoch > this.seenEpoch(sessionId)) this.epochs.set(sessionId, epoch);
  }

  async recordHand(hand: RecordedHand): Promise<void> {
    this.hands.push(hand);
  }

  recordedHands(): RecordedHand[] {
    return this.hands;
  }

  find(sessionId: string, key: string): JournalEntry | undefined {
    return this.entries.get(`${sessionId} ${key}`);
  }

  async start(entry: Omit<JournalEntry, "isFinished">): Promise<void> {
    this.#failIf("start");
    this.entries.set(`${entry.sessionId} ${entry.key}`, { ...entry, isFinished: false });
  }

  async finish(sessionId: string, key: string, result: ExecutionResult): Promise<void> {
    this.#failIf("finish");
    this.find(sessionId, key)!.isFinished = true;
    this.results.set(`${sessionId} ${key}`, result);
  }

  forget(sessionId: string, keys: readonly string[]): void {
    for (const key of keys) this.results.delete(`${sessionId} ${key}`);
  }

  async result(sessionId: string, key: string): Promise<ExecutionResult | undefined> {
    return this.results.get(`${sessionId} ${key}`);
  }

  #failIf(step: "start" | "finish" | "epoch"): void {
    if (this.failNext !== step) return;
    this.failNext = undefined;
    throw new Error("disk full");
  }
}

/** A tool run that went well. */
export function okRun(text: string): ToolRun {
  return {
    isError: false,
    text,
    exitCode: 0,
    isTimedOut: false,
    isCancelled: false,
    wasStarted: true,
    outputBytes: text.length,
  };
}
