import { createHash } from "node:crypto";
import { GanglionError } from "../../common/errors/ganglion-error.ts";
import type { ExecutionJournal, JournalEntry } from "./execution-journal.ts";
import {
  droppedResult,
  type ExecutionResult,
  finishedResult,
  lostResult,
  stoppedResult,
  unknownResult,
} from "./execution-result.ts";
import { HandLostError } from "./hand-driver.ts";
import type { HandRecord, HandRegistry } from "./hand-registry.ts";
import { journalUnavailable } from "./lease-guard.ts";

/** One tool call. */
export type ExecuteCommand = {
  sessionId: string;
  handId: string;
  key: string;
  name: string;
  inputJson: string;
  timeoutMs: number;
};

/** What is known of a call. */
export type ExecutionView = { key: string; handId: string; result: ExecutionResult; isReplayed: boolean };

type Running = { promise: Promise<ExecutionResult>; stop: AbortController; handId: string; digest: string };

/** Executions runs tool calls, each key at most once (law L4, protocols §5). */
export class Executions {
  readonly #hands: HandRegistry;
  readonly #journal: ExecutionJournal;
  readonly #now: () => number;
  readonly #running = new Map<string, Running>();
  /** Results whose record could not be written; they may not be told before it is. */
  readonly #unwritten = new Map<string, ExecutionResult>();

  constructor(parts: { hands: HandRegistry; journal: ExecutionJournal; now: () => number }) {
    this.#hands = parts.hands;
    this.#journal = parts.journal;
    this.#now = parts.now;
  }

  /** Number of calls that run now. */
  get runningCount(): number {
    return this.#running.size;
  }

  /**
   * execute runs a call, attaches to it, or answers from the journal. A caller that goes away detaches: the run goes
   * on, because whoever takes its session over attaches to it (case B075).
   */
  async execute(command: ExecuteCommand): Promise<ExecutionView> {
    const { key, handId } = command;
    const digest = digestOf(command);
    const running = this.#running.get(nameOf(command));
    if (running) {
      refuseOtherCall(running.digest, digest);
      return { key, handId: running.handId, result: await running.promise, isReplayed: false };
    }
    const entry = this.#journal.find(command.sessionId, key);
    if (entry) {
      refuseOtherCall(entry.digest, digest);
      return { key, handId: entry.handId, result: await this.#recall(entry), isReplayed: true };
    }
    const hand = this.#hands.get(command.sessionId, handId);
    if (hand.state === "LOST") {
      const call = { wasStarted: false, isCancelled: false, durationMs: 0 };
      return { key, handId, result: lostResult(hand.lostReason, call), isReplayed: false };
    }
    return { key, handId, result: await this.#begin(command, digest, hand), isReplayed: false };
  }

  /** acknowledge lets go of results that the log holds, so that a journal does not grow with the life of a session. */
  acknowledge(sessionId: string, keys: readonly string[]): void {
    this.#journal.forget(sessionId, keys);
  }

  /** cancel kills a run and resolves when nothing of it runs any more; it changes nothing when there is none. */
  async cancel(call: { sessionId: string; key: string }): Promise<void> {
    const running = this.#running.get(nameOf(call));
    running?.stop.abort();
    await running?.promise.catch(() => undefined);
  }

  /** get says what is known of a key, and runs nothing; undefined result = it runs now and `wait` was not asked. */
  async get(query: {
    sessionId: string;
    key: string;
    wait: boolean;
  }): Promise<ExecutionView | { key: string; handId: string; isRunning: true }> {
    const { key } = query;
    const running = this.#running.get(nameOf(query));
    if (running && !query.wait) return { key, handId: running.handId, isRunning: true };
    if (running) return { key, handId: running.handId, result: await running.promise, isReplayed: false };
    const entry = this.#journal.find(query.sessionId, key);
    if (entry) return { key, handId: entry.handId, result: await this.#recall(entry), isReplayed: true };
    throw new GanglionError({
      code: "NOT_FOUND",
      reason: "EXECUTION_NOT_FOUND",
      message: "the key is not in the journal of this host",
    });
  }

  /** Nothing may be awaited between the look-up above and the entry in #running: the same key may come twice. */
  #begin(command: ExecuteCommand, digest: string, hand: HandRecord): Promise<ExecutionResult> {
    const name = nameOf(command);
    const stop = new AbortController();
    hand.callCount += 1;
    const promise = this.#run(command, digest, hand, stop.signal).finally(() => {
      hand.callCount -= 1;
      hand.lastUsedAt = this.#now();
      this.#running.delete(name);
    });
    this.#running.set(name, { promise, stop, handId: hand.id, digest });
    // A caller that went away does not wait for it any more.
    promise.catch(() => undefined);
    return promise;
  }

  async #run(
    command: ExecuteCommand,
    digest: string,
    hand: HandRecord,
    signal: AbortSignal,
  ): Promise<ExecutionResult> {
    const { sessionId, key, name, inputJson, timeoutMs } = command;
    const startedAt = this.#now();
    try {
      await this.#journal.start({ sessionId, key, handId: hand.id, digest, startedAt });
    } catch (cause) {
      throw journalUnavailable(cause);
    }
    const result = await this.#runInHand(hand, { name, inputJson, timeoutMs }, startedAt, signal);
    await this.#finish(sessionId, key, result);
    return result;
  }

  async #runInHand(
    hand: HandRecord,
    call: { name: string; inputJson: string; timeoutMs: number },
    startedAt: number,
    signal: AbortSignal,
  ): Promise<ExecutionResult> {
    const duration = () => Math.max(0, this.#now() - startedAt);
    const isCancelled = () => signal.aborted;
    if (signal.aborted) return stoppedResult();
    try {
      if (!hand.driven) throw new HandLostError(hand.lostReason, false);
      return finishedResult(await hand.driven.run(call, signal), duration());
    } catch (error) {
      const lost = error instanceof HandLostError ? error : new HandLostError("the hand failed", true);
      await this.#hands.lose(hand, lost.message);
      return lostResult(lost.message, {
        wasStarted: lost.wasStarted,
        isCancelled: isCancelled(),
        durationMs: duration(),
      });
    }
  }

  async #finish(sessionId: string, key: string, result: ExecutionResult): Promise<void> {
    const name = nameOf({ sessionId, key });
    this.#unwritten.set(name, result);
    try {
      await this.#journal.finish(sessionId, key, result);
      this.#unwritten.delete(name);
    } catch (cause) {
      throw journalUnavailable(cause);
    }
  }

  async #recall(entry: JournalEntry): Promise<ExecutionResult> {
    const { sessionId, key, startedAt } = entry;
    const unwritten = this.#unwritten.get(nameOf(entry));
    if (unwritten) {
      await this.#finish(sessionId, key, unwritten);
      return unwritten;
    }
    if (!entry.isFinished) return unknownResult(startedAt);
    return (await this.#journal.result(sessionId, key)) ?? droppedResult(startedAt);
  }
}

function nameOf(call: { sessionId: string; key: string }): string {
  return `${call.sessionId}\n${call.key}`;
}

function digestOf(command: ExecuteCommand): string {
  return createHash("sha256").update(`${command.name}\0${command.inputJson}`).digest("base64url");
}

function refuseOtherCall(known: string, asked: string): void {
  if (known === asked) return;
  throw new GanglionError({
    code: "ALREADY_EXISTS",
    reason: "KEY_REUSED",
    message: "the key was used with another tool or input",
  });
}
