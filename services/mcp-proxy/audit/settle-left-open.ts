import type { Pool } from "pg";
import { waitsForNoRecord } from "../domain/audited-change.ts";
import type { RecordKind } from "../domain/new-record.ts";
import type { LedgerRecord } from "../domain/ports.ts";
import type { Writer } from "./ledger.ts";
import { recoverRequests } from "./recover.ts";
import type { WrittenRow } from "./written-row.ts";

/** Requests of this process whose record could not be written in time. */
export interface LeftOpen {
  add(record: LedgerRecord): void;
  /** True for one of which nothing was sent, whatever the log or the journal of calls says of it. */
  isUnsent(requestId: string): boolean;
  close(): void;
}

interface Failed {
  at: number;
  isUnsent: boolean;
}

const POLL_MS = 1000;
/** By then whoever works on the request has given up. */
const PATIENCE_MS = 5000;
const MOST = 100;
const LEAVES_OPEN: ReadonlySet<RecordKind> = new Set<RecordKind>(["decision", "dispatch", "outcome"]);

/**
 * Closes requests of this process that failed because a record could not be made durable: what the log has of them may be
 * an allowed decision without an end. They get their `recovery` record as soon as the log can be written again. Where the
 * decision or the dispatch was what failed, nothing was sent, though it may be in the log: the record says so, and the
 * call's key is free again.
 */
export function settleLeftOpen(
  pool: Pool,
  writer: Writer,
  keep: (rows: readonly WrittenRow[]) => Promise<void>,
  onTrouble: (error: unknown) => void,
): LeftOpen {
  const failed = new Map<string, Failed>();
  let isBusy = false;
  const look = async () => {
    const due = [...failed].filter(([, { at }]) => Date.now() - at > PATIENCE_MS).slice(0, MOST);
    if (due.length === 0) return;
    const isUnsent = new Map(due.map(([id, request]) => [id, request.isUnsent]));
    await keep(await recoverRequests(pool, writer, isUnsent));
    for (const [id] of due) failed.delete(id);
  };
  const timer = setInterval(() => {
    if (isBusy || failed.size === 0) return;
    isBusy = true;
    look()
      .catch(onTrouble)
      .finally(() => {
        isBusy = false;
      });
  }, POLL_MS);
  timer.unref();
  return {
    add: ({ request_id: id, kind, effect, operation }) => {
      // A denial leaves nothing open, and anybody can ask for any number of them while the log cannot be written.
      if (effect === "deny" || !LEAVES_OPEN.has(kind)) return;
      // What failed before anything was sent ends its request; the record of its end may fail too.
      const isUnsent = failed.get(id)?.isUnsent || (kind !== "outcome" && !waitsForNoRecord(operation));
      failed.set(id, { at: Date.now(), isUnsent });
    },
    isUnsent: (requestId) => failed.get(requestId)?.isUnsent === true,
    close: () => clearInterval(timer),
  };
}
