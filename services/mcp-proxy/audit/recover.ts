import type { Pool } from "pg";
import { isChange } from "../domain/audited-change.ts";
import { blankRecord } from "../domain/new-record.ts";
import { query } from "../store/query.ts";
import { type Writer, writerColumns } from "./ledger.ts";
import { WRITE_RECORDS } from "./ledger-statements.ts";
import type { WrittenRow } from "./written-row.ts";

type OpenRow = Record<string, string> & { request_id: string; operation: string; is_dispatched: boolean };

// Without its last condition the join could not use the index of requests, which leaves out records of none.
const FIND = `SELECT o.request_id, o.is_dispatched, r.session_id, r.workspace_id, r.epoch::text, r.caller, r.token_id,
                r.caller_cert_sha256, r.token_audience,
                r.operation, r.destination, r.target, r.call_key, r.credential_id, r.policy_digest, r.rule_id
         FROM proxy.open_requests o
         JOIN proxy.audit_records r ON r.request_id = o.request_id AND r.kind = 'decision' AND r.request_id <> ''`;
const OPEN = {
  name: "find_open_requests",
  text: `${FIND}
         WHERE (o.instance = $1 AND o.boot_id <> $2)
            OR NOT EXISTS (SELECT FROM proxy.replicas p WHERE p.instance = o.instance AND p.boot_id = o.boot_id
                           AND p.heartbeat_at > now() - interval '60 s')
               AND o.boot_id <> $2
         ORDER BY r.sequence LIMIT 500`,
};
const OPEN_OF = {
  name: "audit_open_requests",
  text: `${FIND} WHERE o.request_id = ANY ($1) ORDER BY r.sequence`,
};
const FREE_KEYS = {
  name: "free_call_keys",
  text: `DELETE FROM proxy.calls c USING unnest($1::text[], $2::text[], $3::text[]) AS u (session_id, call_key, request_id)
         WHERE c.session_id = u.session_id AND c.call_key = u.call_key AND c.request_id = u.request_id
           AND c.state <> 'finished'`,
};

/**
 * Closes what a process that died left open: each allowed request without outcome gets one `recovery` record that
 * says whether it may have left. Nothing is sent again (case A143). Answers the records.
 */
export async function recoverOpenRequests(pool: Pool, writer: Writer): Promise<WrittenRow[]> {
  const written: WrittenRow[] = [];
  for (;;) {
    const rows = await query<OpenRow>(pool, OPEN, [writer.instance, writer.bootId]);
    if (rows.length === 0) return written;
    written.push(...(await write(pool, writer, rows)));
  }
}

/**
 * The same for requests that are named, each with whether it is known that nothing was sent; the keys of such calls are free
 * again. Those that are closed already are left alone, and whoever cannot be found afterwards never will be.
 */
export async function recoverRequests(
  pool: Pool,
  writer: Writer,
  isUnsent: ReadonlyMap<string, boolean>,
): Promise<WrittenRow[]> {
  // Nothing is written, behind whoever writes now: a commit may wait for a disk for longer than its request waited for it.
  await query(pool, WRITE_RECORDS, ["[]"]);
  const rows = await query<OpenRow>(pool, OPEN_OF, [[...isUnsent.keys()]]);
  if (rows.length === 0) return [];
  const unsent = rows.filter(({ request_id: id }) => isUnsent.get(id));
  const calls = unsent.filter(({ call_key: key }) => key !== "");
  // Before the record, which is written once: a failure between the two would leave undone what comes after it.
  if (calls.length > 0) {
    const column = (name: string) => calls.map((row) => row[name]);
    await query(pool, FREE_KEYS, [column("session_id"), column("call_key"), column("request_id")]);
  }
  return write(pool, writer, rows, isUnsent);
}

async function write(
  pool: Pool,
  writer: Writer,
  rows: OpenRow[],
  isUnsent: ReadonlyMap<string, boolean> = new Map(),
): Promise<WrittenRow[]> {
  const entries = rows.map(({ is_dispatched: isDispatched, ...known }) => ({
    record: {
      ...blankRecord("recovery", known.request_id),
      ...known,
      ...fateOf(known, isDispatched, isUnsent.get(known.request_id) === true),
      ...writerColumns(writer),
    },
  }));
  const written = await query<WrittenRow>(pool, WRITE_RECORDS, [JSON.stringify(entries)]);
  // Another replica, or an outcome that came through late, may have closed one meanwhile.
  return written.filter(({ line }) => line !== null);
}

/** How far a request came, and the word for it. */
function fateOf({ operation }: Pick<OpenRow, "operation">, isDispatched: boolean, isUnsent: boolean) {
  // A change has no dispatch: how far it came at Vault and in the database nobody wrote down.
  if (!isUnsent && (isDispatched || isChange(operation)))
    return { reason: "unknown", upstream_effect: "unknown" };
  return { reason: isUnsent && isDispatched ? "not_sent" : "not_dispatched", upstream_effect: "none" };
}
