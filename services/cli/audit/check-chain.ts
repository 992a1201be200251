import type { AuditLine, AuditRecord } from "./audit-record.ts";
import type { Findings } from "./finding.ts";
import type { Checkpoint } from "./signed-note.ts";

const NO_RECORD = "0".repeat(64);

/** What is expected of a log from outside. */
export interface Expected {
  /** Id of the log, if something outside says it. */
  readonly logId: string | undefined;
  readonly checkpoints: ReadonlyMap<bigint, Checkpoint>;
}

/** Checks line by line that a log is one chain, and that it is the chain which the checkpoints anchor. */
export class ChainCheck {
  readonly #findings: Findings;
  readonly #expected: Expected;
  #logId: string | undefined;
  #last: { sequence: bigint; hash: string; isSound: boolean } | undefined;
  #first: bigint | undefined;
  #anchors = 0;
  #records = 0n;

  constructor(findings: Findings, expected: Expected) {
    this.#findings = findings;
    this.#expected = expected;
    this.#logId = expected.logId;
  }

  /** Takes the next line. */
  add({ record, fault }: AuditLine): void {
    const at = record?.sequence;
    const where = record ? `record ${at}` : `the line after record ${this.#last?.sequence ?? 0n}`;
    if (fault) this.#findings.add("altered", `${where} ${fault}`, at);
    if (!record) {
      if (this.#last) this.#last.isSound = false;
      return;
    }
    this.#records += 1n;
    this.#logId ??= record.log_id;
    if (record.log_id !== this.#logId) this.#findings.add("altered", `${where} is of another log`, at);
    const sequence = BigInt(record.sequence);
    this.#checkPlace(record, sequence, fault === undefined);
    const checkpoint = this.#expected.checkpoints.get(sequence);
    if (checkpoint && fault === undefined) {
      this.#anchors += 1;
      if (checkpoint.head !== record.hash) {
        this.#findings.add("fork", `${where} is not the record that the checkpoint of that size covers`, at);
      }
    }
    this.#last = { sequence, hash: record.hash, isSound: fault === undefined };
    this.#first ??= sequence;
  }

  /** The log is over: does it reach as far as it must? */
  end(): { records: bigint; first: bigint; last: bigint; anchors: number; logId: string | undefined } {
    const last = this.#last?.sequence ?? 0n;
    const sizes = [...this.#expected.checkpoints.keys()];
    const most = sizes.reduce((a, b) => (a > b ? a : b), 0n);
    if (most > last) {
      const kind = this.#last ? "tail_lost" : "empty";
      this.#findings.add(kind, `the log ends with record ${last}, but a checkpoint covers ${most}`);
    }
    if (this.#anchors === 0) this.#findings.add("no_anchor", "no checkpoint covers a record of this log");
    return {
      records: this.#records,
      first: this.#first ?? 0n,
      last,
      anchors: this.#anchors,
      logId: this.#logId,
    };
  }

  /** True while nothing of the beginning is missing. */
  isFromStart(): boolean {
    return this.#first === 1n;
  }

  #checkPlace(record: AuditRecord, sequence: bigint, isSound: boolean): void {
    const { prev } = record;
    const last = this.#last;
    if (!last) {
      this.#checkStart(record, sequence);
      return;
    }
    const at = record.sequence;
    if (sequence !== last.sequence + 1n) {
      const what = sequence <= last.sequence ? "comes again or out of order" : "does not follow";
      this.#findings.add("order", `record ${at} ${what} after record ${last.sequence}`, at);
    } else if (isSound && last.isSound && prev !== last.hash) {
      this.#findings.add(
        "order",
        `record ${at} was not written after the record ${last.sequence} shown here`,
        at,
      );
    }
  }

  /** A log may begin later than with its first record if a checkpoint anchors the place where it begins. */
  #checkStart({ prev, sequence: at }: AuditRecord, sequence: bigint): void {
    if (sequence === 1n && prev === NO_RECORD) return;
    const anchor = this.#expected.checkpoints.get(sequence - 1n);
    if (anchor && anchor.head === prev) return;
    if (anchor) this.#findings.add("fork", `record ${at} does not continue the checkpoint before it`, at);
    else
      this.#findings.add(
        "leading_loss",
        `the log begins with record ${at}; what was before is not shown`,
        at,
      );
  }
}
