import type { JournalEntry, RecordedHand } from "../domain/execution-journal.ts";
import type { JournalRecord } from "./journal-record.ts";
import type { RecordPlace } from "./record-log.ts";

type Call = {
  entry: JournalEntry;
  result: RecordPlace | undefined;
  bytes: number;
  endedAt: number | undefined;
};
type Session = { epoch: bigint; touchedAt: number; calls: Map<string, Call> };

const SMALL_RECORD_BYTES = 256;

/** JournalState is the index of a journal: everything but the results, which stay in the file. */
export class JournalState {
  readonly #sessions = new Map<string, Session>();
  readonly #hands = new Map<string, RecordedHand>();

  /** apply folds one record in; `place` is where it lies. */
  apply(record: JournalRecord, place: RecordPlace): void {
    const session = this.#session(record.session, record.at);
    switch (record.kind) {
      case "epoch":
        if (BigInt(record.epoch) > session.epoch) session.epoch = BigInt(record.epoch);
        return;
      case "hand":
        this.#hands.set(record.hand, {
          handId: record.hand,
          sessionId: record.session,
          createdAt: record.at,
        });
        return;
      case "start":
        if (!session.calls.has(record.key)) session.calls.set(record.key, newCall(record, place.length));
        return;
      case "end":
      case "dropped": {
        const call = session.calls.get(record.key);
        if (!call || call.entry.isFinished) return;
        call.entry.isFinished = true;
        call.endedAt = record.at;
        call.bytes += place.length;
        if (record.kind === "end") call.result = place;
      }
    }
  }

  seenEpoch(sessionId: string): bigint {
    return this.#sessions.get(sessionId)?.epoch ?? 0n;
  }

  hands(): RecordedHand[] {
    return [...this.#hands.values()];
  }

  find(sessionId: string, key: string): JournalEntry | undefined {
    const entry = this.#sessions.get(sessionId)?.calls.get(key)?.entry;
    return entry && { ...entry };
  }

  resultPlace(sessionId: string, key: string): RecordPlace | undefined {
    return this.#sessions.get(sessionId)?.calls.get(key)?.result;
  }

  /** Bytes that a rewritten file would have, about. */
  get liveBytes(): number {
    let bytes = (this.#sessions.size + this.#hands.size) * SMALL_RECORD_BYTES;
    for (const session of this.#sessions.values()) {
      for (const call of session.calls.values()) bytes += call.bytes;
    }
    return bytes;
  }

  /** dropOld forgets results, then whole calls, hands and sessions, that are older than two points in time. */
  dropOld(limits: { resultsBefore: number; callsBefore: number }): void {
    for (const [id, session] of this.#sessions) {
      for (const [key, call] of session.calls) {
        if (call.result && call.endedAt !== undefined && call.endedAt < limits.resultsBefore) {
          call.result = undefined;
          call.bytes = SMALL_RECORD_BYTES;
        }
        if (call.entry.startedAt < limits.callsBefore) session.calls.delete(key);
      }
      if (session.touchedAt < limits.callsBefore && session.calls.size === 0) this.#sessions.delete(id);
    }
    for (const [id, hand] of this.#hands) {
      if (hand.createdAt < limits.resultsBefore) this.#hands.delete(id);
    }
  }

  /** forget drops the results of finished calls. */
  forget(sessionId: string, keys: readonly string[]): void {
    const calls = this.#sessions.get(sessionId)?.calls;
    for (const key of keys) {
      const call = calls?.get(key);
      if (!call?.result) continue;
      call.result = undefined;
      call.bytes = SMALL_RECORD_BYTES;
    }
  }

  /** records yields what a rewritten file has to hold. */
  async *records(read: (place: RecordPlace) => Promise<Buffer>): AsyncGenerator<JournalRecord> {
    for (const hand of this.#hands.values()) {
      yield { kind: "hand", session: hand.sessionId, hand: hand.handId, at: hand.createdAt };
    }
    for (const [session, { epoch, touchedAt, calls }] of this.#sessions) {
      yield { kind: "epoch", session, epoch: String(epoch), at: touchedAt };
      for (const { entry, result, endedAt } of calls.values()) {
        const { key, handId: hand, digest, startedAt: at } = entry;
        yield { kind: "start", session, key, hand, digest, at };
        if (result) yield JSON.parse((await read(result)).toString("utf8")) as JournalRecord;
        else if (entry.isFinished) yield { kind: "dropped", session, key, at: endedAt ?? at };
      }
    }
  }

  #session(id: string, at: number): Session {
    let session = this.#sessions.get(id);
    if (!session) {
      session = { epoch: 0n, touchedAt: at, calls: new Map() };
      this.#sessions.set(id, session);
    }
    session.touchedAt = Math.max(session.touchedAt, at);
    return session;
  }
}

function newCall(record: Extract<JournalRecord, { kind: "start" }>, bytes: number): Call {
  return {
    entry: {
      sessionId: record.session,
      key: record.key,
      handId: record.hand,
      digest: record.digest,
      startedAt: record.at,
      isFinished: false,
    },
    result: undefined,
    bytes,
    endedAt: undefined,
  };
}
