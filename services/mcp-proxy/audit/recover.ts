import type { Pool } from "pg";
import { blankRecord } from "../domain/new-record.ts";
import { isDuplicate } from "../store/database-error.ts";
import { query } from "../store/query.ts";
import type { Writer } from "./ledger.ts";
import { WRITE_RECORDS } from "./ledger-statements.ts";

const OPEN = {
  name: "find_open_requests",
  text: `SELECT o.request_id, o.is_dispatched, r.session_id, r.workspace_id, r.epoch::text, r.caller, r.token_id,
                r.operation, r.destination, r.target, r.call_key
         FROM proxy.open_requests o JOIN proxy.audit_records r ON r.request_id = o.request_id AND r.kind = 'decision'
         WHERE (o.instance = $1 AND o.boot_id <> $2)
            OR NOT EXISTS (SELECT FROM proxy.replicas p WHERE p.instance = o.instance AND p.boot_id = o.boot_id
                           AND p.heartbeat_at > now() - interval '60 s')
               AND o.boot_id <> $2
         ORDER BY r.sequence LIMIT 500`,
};

/**
 * Closes what a process that died left open: each allowed request without outcome gets one `recovery` record that
 * says whether it may have left. Nothing is sent again (case A143). Answers how many there were.
 */
export async function recoverOpenRequests(pool: Pool, writer: Writer): Promise<number> {
  let closed = 0;
  for (;;) {
    const rows = await query<Record<string, string> & { request_id: string; is_dispatched: boolean }>(
      pool,
      OPEN,
      [writer.instance, writer.bootId],
    );
    if (rows.length === 0) return closed;
    const entries = rows.map(({ is_dispatched: isDispatched, ...known }) => ({
      record: {
        ...blankRecord("recovery", known.request_id),
        ...known,
        reason: isDispatched ? "unknown" : "not_dispatched",
        instance: writer.instance,
        boot_id: writer.bootId,
      },
    }));
    try {
      await query(pool, WRITE_RECORDS, [JSON.stringify(entries)]);
      closed += rows.length;
    } catch (error) {
      // Another replica closes the same ones now; the next look finds what is left.
      if (!isDuplicate(error)) throw error;
    }
  }
}
