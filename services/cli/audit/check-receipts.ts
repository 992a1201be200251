import { type AuditRecord, canonical, readAuditLine } from "./audit-record.ts";
import type { NamedText } from "./check-checkpoints.ts";
import type { Findings } from "./finding.ts";
import type { PublicKeys } from "./public-keys.ts";
import { type Checkpoint, NoteInvalid, openNote } from "./signed-note.ts";

interface Receipt {
  readonly name: string;
  readonly record: AuditRecord;
  /** Records of the session seen so far before its end. */
  seen: bigint;
  isFound: boolean;
}

/** Compares a log with receipts that were given out at the end of sessions. */
export class ReceiptCheck {
  readonly #findings: Findings;
  readonly #bySession = new Map<string, Receipt[]>();
  #last = 0n;

  /** Opens the receipts; their checkpoints are added to those that the log must continue to. */
  constructor(
    files: readonly NamedText[],
    keys: PublicKeys,
    checkpoints: Map<bigint, Checkpoint>,
    findings: Findings,
  ) {
    this.#findings = findings;
    for (const { name, text } of files) {
      const opened = openReceipt(text, keys);
      if (typeof opened === "string") {
        findings.add("signature", `${name} ${opened}`);
        continue;
      }
      const { record, checkpoint } = opened;
      const other = checkpoints.get(checkpoint.size);
      if (other && other.head !== checkpoint.head) {
        findings.add("fork", `${name}: another checkpoint was signed for size ${checkpoint.size}`);
      }
      checkpoints.set(checkpoint.size, other ?? checkpoint);
      const known = this.#bySession.get(record.session_id) ?? [];
      this.#bySession.set(record.session_id, [...known, { name, record, seen: 0n, isFound: false }]);
    }
  }

  /** Takes the next record of the log. */
  add(record: AuditRecord): void {
    const sequence = BigInt(record.sequence);
    // One that comes again is found by the chain, and counted once here.
    if (sequence <= this.#last) return;
    this.#last = sequence;
    for (const receipt of this.#bySession.get(record.session_id) ?? []) {
      if (sequence < BigInt(receipt.record.sequence)) receipt.seen += 1n;
      if (record.sequence === receipt.record.sequence) this.#compare(receipt, record);
    }
  }

  /** The log is over. `first` is its first sequence. */
  end(first: bigint): void {
    for (const { name, record, seen, isFound } of [...this.#bySession.values()].flat()) {
      const { sequence } = record;
      if (!isFound) {
        this.#findings.add(
          "tail_lost",
          `${name}: record ${sequence}, the end of the session, is not in the log`,
          sequence,
        );
      } else if (first === 1n && seen !== BigInt(record.record_count)) {
        this.#findings.add(
          "order",
          `${name}: the session had ${record.record_count} records before its end, the log shows ${seen}`,
          sequence,
        );
      }
    }
  }

  #compare(receipt: Receipt, record: AuditRecord): void {
    receipt.isFound = true;
    if (canonical(record) === canonical(receipt.record)) return;
    const { sequence } = record;
    this.#findings.add("fork", `${receipt.name}: record ${sequence} is another one in the log`, sequence);
  }
}

function openReceipt(
  text: string,
  keys: PublicKeys,
): { record: AuditRecord; checkpoint: Checkpoint } | string {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return "is not a receipt";
  }
  const {
    v,
    log_id: logId,
    session_id: sessionId,
    record,
    checkpoint: note,
  } = (value ?? {}) as Record<string, unknown>;
  if (v !== 1 || typeof record !== "object" || record === null || typeof note !== "string") {
    return "is not a receipt";
  }
  const line = readAuditLine(canonical(record as Record<string, unknown>));
  if (!line.record || line.fault) return "has a record that is not sound";
  const isOwn =
    logId === keys.logId &&
    line.record.log_id === logId &&
    line.record.session_id === sessionId &&
    line.record.kind === "session_end";
  if (!isOwn) return "has the record of another log, session or kind";
  try {
    const checkpoint = openNote(note, keys);
    const sequence = BigInt(line.record.sequence);
    if (checkpoint.size < sequence) return "has a checkpoint that does not cover its record";
    if (checkpoint.size === sequence && checkpoint.head !== line.record.hash) {
      return "has a checkpoint of another record";
    }
    return { record: line.record, checkpoint };
  } catch (error) {
    if (!(error instanceof NoteInvalid)) throw error;
    return `has a checkpoint that ${error.message}`;
  }
}
