import type { Pool } from "pg";
import { query } from "../store/query.ts";
import type { Writer } from "./ledger.ts";
import type { WrittenRow } from "./written-row.ts";

/** Writes the end of sessions into the log. */
export interface SessionEnds {
  /** A session may have ended: look now. */
  wake(): void;
  close(): Promise<void>;
}

/** What it needs. */
export interface SessionEndsOptions {
  pool: Pool;
  writer: Writer;
  /** Makes lines durable outside of the database too. */
  keep: (rows: readonly WrittenRow[]) => Promise<void>;
  /** Records up to this one end sessions: receipts want a checkpoint. */
  onEnded: (sequence: bigint) => void;
  onTrouble: (error: unknown) => void;
}

const WRITE = {
  name: "audit_session_ends",
  text: "SELECT w.sequence, w.line FROM proxy.write_session_ends($1, $2, $3, $4) w ORDER BY w.ordinal",
};
/** Also what no notification told of is found; a session with an open request is waited for. */
const POLL_MS = 2000;
const MOST = 64;

/** Starts writing the session_end of sessions that ended, each once, whichever replica comes first. */
export function startSessionEnds({
  pool,
  writer,
  keep,
  onEnded,
  onTrouble,
}: SessionEndsOptions): SessionEnds {
  let isClosed = false;
  let isAgain = false;
  let running: Promise<void> | undefined;
  const look = async () => {
    do {
      isAgain = false;
      const rows = await query<WrittenRow>(pool, WRITE, [
        writer.instance,
        writer.bootId,
        MOST,
        writer.build ?? "",
      ]);
      const last = rows.at(-1);
      if (last) {
        // Stored is stored: the file catches up by itself.
        await keep(rows).catch(onTrouble);
        onEnded(BigInt(last.sequence));
      }
      if (rows.length === MOST) isAgain = true;
    } while (isAgain && !isClosed);
  };
  const wake = () => {
    isAgain = true;
    if (isClosed || running !== undefined) return;
    running = look()
      .catch(onTrouble)
      .finally(() => {
        running = undefined;
      });
  };
  const timer = setInterval(wake, POLL_MS);
  timer.unref();
  return {
    wake,
    close: async () => {
      isClosed = true;
      clearInterval(timer);
      await running;
    },
  };
}
