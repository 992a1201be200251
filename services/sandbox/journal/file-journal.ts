import { closeSync, fsyncSync, mkdirSync, openSync } from "node:fs";
import { rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { crashPoint } from "../../common/crash/crash-point.ts";
import type { ExecutionJournal, JournalEntry, RecordedHand } from "../domain/execution-journal.ts";
import type { ExecutionResult } from "../domain/execution-result.ts";
import type { JournalRecord } from "./journal-record.ts";
import { JournalState } from "./journal-state.ts";
import { RecordLog, type StoredRecord } from "./record-log.ts";

/** How the journal is kept. */
export type FileJournalOptions = {
  folder: string;
  /** After this long a result's text is dropped; that the call was made stays known ten times as long. */
  retentionMs: number;
  /** The file is rewritten when it is larger than this and at least half of it is waste. */
  compactBytes: number;
  /** Above this nothing is written any more. */
  maxBytes: number;
  now: () => number;
};

const FILE = "journal.log";
const HOUR_MS = 3_600_000;

/** FileJournal keeps the journal in one append-only file and its index in memory. */
export class FileJournal implements ExecutionJournal {
  readonly #options: FileJournalOptions;
  #state: JournalState;
  #log: RecordLog;
  #compacting: Promise<void> | undefined;
  #nextCompaction: number;
  #isSettled = true;
  readonly #writing = new Set<Promise<unknown>>();

  private constructor(options: FileJournalOptions, state: JournalState, log: RecordLog) {
    this.#options = options;
    this.#state = state;
    this.#log = log;
    this.#nextCompaction = options.compactBytes;
  }

  /** open reads the journal of a predecessor and drops what is too old. */
  static async open(options: FileJournalOptions): Promise<FileJournal> {
    mkdirSync(options.folder, { recursive: true, mode: 0o700 });
    await rm(join(options.folder, `${FILE}.new`), { force: true });
    const state = new JournalState();
    const log = await RecordLog.open(join(options.folder, FILE), (stored) =>
      state.apply(parse(stored), stored),
    );
    // The file's name must survive a crash as well as its content.
    syncFolder(options.folder);
    const journal = new FileJournal(options, state, log);
    await journal.compactIfWorth();
    return journal;
  }

  /** False when calls are refused because nothing can be recorded. */
  get isWritable(): boolean {
    return this.#isSettled && this.#log.isWritable && this.#log.size <= this.#options.maxBytes;
  }

  seenEpoch(sessionId: string): bigint {
    return this.#state.seenEpoch(sessionId);
  }

  async raiseEpoch(sessionId: string, epoch: bigint): Promise<void> {
    if (epoch <= this.seenEpoch(sessionId)) return;
    await this.#write({ kind: "epoch", session: sessionId, epoch: String(epoch), at: this.#options.now() });
  }

  async recordHand(hand: RecordedHand): Promise<void> {
    await this.#write({ kind: "hand", session: hand.sessionId, hand: hand.handId, at: hand.createdAt });
  }

  recordedHands(): RecordedHand[] {
    return this.#state.hands();
  }

  find(sessionId: string, key: string): JournalEntry | undefined {
    return this.#state.find(sessionId, key);
  }

  async start(entry: Omit<JournalEntry, "isFinished">): Promise<void> {
    const { sessionId, key, handId, digest, startedAt } = entry;
    await this.#write({ kind: "start", session: sessionId, key, hand: handId, digest, at: startedAt });
  }

  async finish(sessionId: string, key: string, result: ExecutionResult): Promise<void> {
    await this.#write({ kind: "end", session: sessionId, key, result, at: this.#options.now() });
    await this.compactIfWorth();
  }

  forget(sessionId: string, keys: readonly string[]): void {
    this.#state.forget(sessionId, keys);
  }

  async result(sessionId: string, key: string): Promise<ExecutionResult | undefined> {
    await this.#compacting;
    const place = this.#state.resultPlace(sessionId, key);
    if (!place) return undefined;
    const record = JSON.parse((await this.#log.read(place)).toString("utf8")) as JournalRecord;
    return record.kind === "end" ? record.result : undefined;
  }

  /** close waits for what is being written. */
  async close(): Promise<void> {
    await this.#compacting;
    await this.#log.close();
  }

  /** compactIfWorth drops what is too old, and rewrites the file when half of it is waste. It never throws. */
  async compactIfWorth(): Promise<void> {
    if (this.#compacting !== undefined || this.#log.size < this.#nextCompaction) return;
    const { retentionMs, maxBytes, now } = this.#options;
    // A journal that fills up keeps less rather than refusing calls; what is younger than an hour stays.
    const results = this.#log.size > maxBytes / 2 ? Math.min(retentionMs, HOUR_MS) : retentionMs;
    this.#state.dropOld({ resultsBefore: now() - results, callsBefore: now() - 10 * retentionMs });
    this.#nextCompaction = this.#log.size * 1.25;
    if (this.#state.liveBytes * 2 > this.#log.size) return;
    this.#compacting = this.#compact()
      .then(() => {
        this.#nextCompaction = Math.max(this.#options.compactBytes, this.#log.size * 2);
      })
      // The old file is still there and still right; it is tried again when it has grown.
      .catch(() => rm(join(this.#options.folder, `${FILE}.new`), { force: true }))
      .finally(() => {
        this.#compacting = undefined;
      });
    await this.#compacting;
  }

  /** Writers wait meanwhile: what they append must not fall between the two files. */
  async #compact(): Promise<void> {
    const path = join(this.#options.folder, FILE);
    await Promise.allSettled(this.#writing);
    const old = this.#log;
    const state = new JournalState();
    const fresh = await RecordLog.open(`${path}.new`, () => undefined);
    try {
      await copyInto(
        fresh,
        state,
        this.#state.records((place) => old.read(place)),
      );
      crashPoint("journal.replace.before");
      await rename(`${path}.new`, path);
      crashPoint("journal.replace.after");
    } catch (error) {
      await fresh.close();
      throw error;
    }
    this.#state = state;
    this.#log = fresh;
    // Until the folder is synced a crash could bring the old file back, without what is written from now on.
    this.#isSettled = false;
    syncFolder(this.#options.folder);
    this.#isSettled = true;
    await old.close();
  }

  async #write(record: JournalRecord): Promise<void> {
    while (this.#compacting !== undefined) await this.#compacting;
    if (!this.#isSettled) throw new Error("the journal's folder could not be synced");
    if (this.#log.size > this.#options.maxBytes) throw new Error("the journal is full");
    const state = this.#state;
    const writing = this.#log.append(encode(record)).then((place) => state.apply(record, place));
    this.#writing.add(writing);
    try {
      await writing;
    } finally {
      this.#writing.delete(writing);
    }
  }
}

async function copyInto(
  log: RecordLog,
  state: JournalState,
  records: AsyncIterable<JournalRecord>,
): Promise<void> {
  const writes: Promise<void>[] = [];
  for await (const record of records) {
    writes.push(log.append(encode(record)).then((place) => state.apply(record, place)));
    if (writes.length >= 256) await Promise.all(writes.splice(0));
  }
  await Promise.all(writes);
}

function encode(record: JournalRecord): Buffer {
  return Buffer.from(JSON.stringify(record), "utf8");
}

function parse(stored: StoredRecord): JournalRecord {
  return JSON.parse(stored.payload.toString("utf8")) as JournalRecord;
}

function syncFolder(folder: string): void {
  const handle = openSync(folder, "r");
  try {
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
}
