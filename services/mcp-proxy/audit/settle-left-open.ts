import type { Pool } from "pg";
import type { Writer } from "./ledger.ts";
import { recoverRequests } from "./recover.ts";
import type { WrittenRow } from "./written-row.ts";

/** Requests of this process whose record could not be written in time. */
export interface LeftOpen {
  add(requestId: string): void;
  close(): void;
}

const POLL_MS = 1000;
/** By then whoever works on the request has given up. */
const PATIENCE_MS = 5000;
const MOST = 100;

/**
 * Closes requests of this process that failed because a record could not be made durable: what the log has of them may be
 * an allowed decision without an end. They get their `recovery` record as soon as the log can be written again.
 */
export function settleLeftOpen(
  pool: Pool,
  writer: Writer,
  keep: (rows: readonly WrittenRow[]) => Promise<void>,
  onTrouble: (error: unknown) => void,
): LeftOpen {
  const since = new Map<string, number>();
  let isBusy = false;
  const look = async () => {
    const due = [...since].filter(([, at]) => Date.now() - at > PATIENCE_MS).slice(0, MOST);
    if (due.length === 0) return;
    const ids = due.map(([id]) => id);
    await keep(await recoverRequests(pool, writer, ids));
    for (const id of ids) since.delete(id);
  };
  const timer = setInterval(() => {
    if (isBusy || since.size === 0) return;
    isBusy = true;
    look()
      .catch(onTrouble)
      .finally(() => {
        isBusy = false;
      });
  }, POLL_MS);
  timer.unref();
  return {
    add: (requestId) => since.set(requestId, Date.now()),
    close: () => clearInterval(timer),
  };
}
