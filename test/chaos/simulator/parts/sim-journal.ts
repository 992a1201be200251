import type {
  ExecutionJournal,
  JournalEntry,
  RecordedHand,
} from "../../../../services/sandbox/domain/execution-journal.ts";
import type { ExecutionResult } from "../../../../services/sandbox/domain/execution-result.ts";
import type { JournalRecord } from "../../../../services/sandbox/journal/journal-record.ts";
import { JournalState } from "../../../../services/sandbox/journal/journal-state.ts";
import type { Random } from "../../../kit/random.ts";
import type { SimProcess } from "../core/virtual-time.ts";

/** A sandbox host's disk. What was synced outlives every process; what was not may. */
export class SimDisk {
  readonly records: JournalRecord[] = [];
  /** Records that are being synced, oldest first. */
  readonly unsynced: JournalRecord[] = [];
  readonly #random: Random;

  constructor(random: Random) {
    this.#random = random;
  }

  /** The service died: some of what it was just writing may have reached the disk, in the order of writing. */
  crash(): void {
    const kept = this.#random.integer(0, this.unsynced.length);
    this.records.push(...this.unsynced.splice(0).slice(0, kept));
  }
}

/** How good the journal is; a mutation of the simulator makes it worse. */
export interface JournalRules {
  /** False: it forgets that a key was used as soon as the run has ended. */
  remembersKeys: boolean;
}

/** The journal of one boot of a sandbox: the real index over a simulated disk with group sync. */
export class SimJournal implements ExecutionJournal {
  readonly #disk: SimDisk;
  readonly #process: SimProcess;
  readonly #state = new JournalState();
  readonly #results = new Map<number, ExecutionResult>();
  readonly #rules: JournalRules;
  #places = 0;
  #waiting: (() => void)[] = [];
  #isSyncing = false;

  constructor(disk: SimDisk, process: SimProcess, rules: JournalRules) {
    this.#disk = disk;
    this.#process = process;
    this.#rules = rules;
    for (const record of disk.records) this.#apply(record);
  }

  seenEpoch(sessionId: string): bigint {
    return this.#state.seenEpoch(sessionId);
  }

  async raiseEpoch(sessionId: string, epoch: bigint): Promise<void> {
    if (epoch <= this.seenEpoch(sessionId)) return;
    await this.#write({ kind: "epoch", session: sessionId, epoch: String(epoch), at: this.#now() });
  }

  async recordHand(hand: RecordedHand): Promise<void> {
    await this.#write({ kind: "hand", session: hand.sessionId, hand: hand.handId, at: hand.createdAt });
  }

  recordedHands(): RecordedHand[] {
    return this.#state.hands();
  }

  find(sessionId: string, key: string): JournalEntry | undefined {
    return this.#rules.remembersKeys ? this.#state.find(sessionId, key) : undefined;
  }

  async start(entry: Omit<JournalEntry, "isFinished">): Promise<void> {
    const { sessionId, key, handId, digest, startedAt } = entry;
    await this.#write({ kind: "start", session: sessionId, key, hand: handId, digest, at: startedAt });
  }

  async finish(sessionId: string, key: string, result: ExecutionResult): Promise<void> {
    await this.#write({ kind: "end", session: sessionId, key, result, at: this.#now() });
  }

  forget(sessionId: string, keys: readonly string[]): void {
    this.#state.forget(sessionId, keys);
  }

  async result(sessionId: string, key: string): Promise<ExecutionResult | undefined> {
    const place = this.#state.resultPlace(sessionId, key);
    return place && this.#results.get(place.offset);
  }

  #now(): number {
    return this.#process.time.now;
  }

  // As the real file does it: what is appended while a sync runs shares the next one, and all are told in order.
  async #write(record: JournalRecord): Promise<void> {
    this.#disk.unsynced.push(record);
    const synced = new Promise<void>((resolve) => this.#waiting.push(resolve));
    if (!this.#isSyncing) this.#sync();
    await synced;
    this.#apply(record);
  }

  #sync(): void {
    this.#isSyncing = true;
    const batch = this.#waiting;
    this.#waiting = [];
    this.#process.timer(this.#process.random.between(0.2, 4), () => {
      this.#disk.records.push(...this.#disk.unsynced.splice(0, batch.length));
      for (const resolve of batch) resolve();
      if (this.#waiting.length > 0) this.#sync();
      else this.#isSyncing = false;
    });
  }

  #apply(record: JournalRecord): void {
    const place = { offset: ++this.#places, length: 1 };
    if (record.kind === "end") this.#results.set(place.offset, record.result);
    this.#state.apply(record, place);
  }
}
