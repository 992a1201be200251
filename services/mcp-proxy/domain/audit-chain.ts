import { createHash } from "node:crypto";

/** What stands for "nothing before": 32 zero bytes in hexadecimal. */
export const GENESIS = "0".repeat(64);

/** A place in the chain. */
export interface Head {
  sequence: bigint;
  hash: string;
}

/** A record as an export has it; every member is text or a small number. */
export type ExportedRecord = Record<string, string | number>;

/** The canonical form (RFC 8785) of a flat object of texts and small numbers with ASCII keys. */
export function canonical(record: ExportedRecord): string {
  const members = Object.keys(record)
    .sort()
    .map((key) => `${JSON.stringify(key)}:${JSON.stringify(record[key])}`);
  return `{${members.join(",")}}`;
}

/** The hash that a record must have: SHA-256 over a zero byte and its canonical form without the hash. */
export function hashOf({ hash: _, ...content }: ExportedRecord): string {
  return createHash("sha256").update("\0").update(canonical(content)).digest("hex");
}

/**
 * Follows exported lines from a known place of the chain to the last of them. Throws BrokenChain at the first line that
 * is not canonical, has another hash than its content, or does not follow the one before.
 */
export function followChain(lines: readonly string[], from: Head): Head {
  let head = from;
  for (const line of lines) {
    const record = JSON.parse(line) as ExportedRecord;
    const sequence = head.sequence + 1n;
    if (record.sequence !== String(sequence)) throw new BrokenChain(sequence, "is missing or out of order");
    if (record.prev !== head.hash) throw new BrokenChain(sequence, "does not follow the record before it");
    if (canonical(record) !== line || record.hash !== hashOf(record))
      throw new BrokenChain(sequence, "was altered");
    head = { sequence, hash: record.hash };
  }
  return head;
}

/** The chain does not hold at a record. */
export class BrokenChain extends Error {
  override readonly name = "BrokenChain";

  constructor(sequence: bigint, how: string) {
    super(`record ${sequence} ${how}`);
  }
}
