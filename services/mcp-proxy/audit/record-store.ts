import type { Pool } from "pg";
import type { NewRecord } from "../domain/new-record.ts";
import { query } from "../store/query.ts";

type Integers =
  | "epoch"
  | "credential_version"
  | "request_bytes"
  | "response_bytes"
  | "redactions"
  | "sequence"
  | "record_count";

/** A record as it stands in the log. */
export type StoredRecord = Omit<NewRecord, Integers> &
  Record<Integers, string> & {
    created_at: Date;
    v: number;
    log_id: string;
    prev: string;
    hash: string;
    /** As exported. */
    line: string;
  };

/** Which records to read. */
export interface RecordQuery {
  afterSequence: bigint;
  limit: number;
  /** Empty = any. */
  sessionId: string;
  /** Empty = any. */
  requestId: string;
}

// By name: of a statement that asks for all columns the database prepares none anew for a process that was there before
// a newer one added some.
const SELECT = `SELECT r.sequence, r.created_at, r.v, r.log_id, r.prev, r.hash, r.kind, r.request_id, r.session_id,
    r.workspace_id, r.epoch, r.caller, r.token_id, r.operation, r.destination, r.target, r.tls_version, r.effect, r.reason,
    r.policy_digest, r.rule_id, r.credential_id, r.credential_version, r.vault_request_id, r.peer_address,
    r.peer_spki_sha256, r.caller_cert_sha256, r.token_audience, r.request_body_hmac, r.response_body_hmac,
    r.vault_token_accessor_hmac, r.hmac_key_id, r.response_withheld, r.upstream_effect, r.build, r.status, r.request_bytes, r.response_bytes, r.call_key, r.redactions, r.record_count, r.detail,
    r.instance, r.boot_id, proxy.audit_line(r) AS line
  FROM proxy.audit_records r`;
const RECORDS = `${SELECT} WHERE r.sequence > $1`;
const IN_ORDER = "ORDER BY r.sequence LIMIT $2";
// Conditions of their own, so that each finds its index.
const LIST = { name: "list_records", text: `${RECORDS} ${IN_ORDER}` };
const LIST_OF_SESSION = {
  name: "list_records_of_session",
  text: `${RECORDS} AND r.session_id = $3 AND r.session_id <> '' ${IN_ORDER}`,
};
const LIST_OF_REQUEST = {
  name: "list_records_of_request",
  text: `${RECORDS} AND r.request_id = $4 AND r.request_id <> '' AND ($3 = '' OR r.session_id = $3) ${IN_ORDER}`,
};
const SESSION_END = {
  name: "audit_session_end",
  text: `${SELECT} WHERE r.session_id = $1 AND r.kind = 'session_end'`,
};
const OWN_LINES = {
  name: "audit_own_lines",
  text: `SELECT proxy.audit_line(r) AS line FROM proxy.audit_records r
         WHERE r.instance = $1 AND r.sequence >= $2 ORDER BY r.sequence LIMIT $3`,
};
const KNOWN_KEYS = {
  name: "audit_known_keys",
  text: "SELECT r.detail FROM proxy.audit_records r WHERE r.kind = 'key_change'",
};

/** Reads the log in the order in which it was written. */
export function listRecords(pool: Pool, { afterSequence, limit, sessionId, requestId }: RecordQuery) {
  const values = [afterSequence, limit];
  if (requestId !== "") return query<StoredRecord>(pool, LIST_OF_REQUEST, [...values, sessionId, requestId]);
  if (sessionId !== "") return query<StoredRecord>(pool, LIST_OF_SESSION, [...values, sessionId]);
  return query<StoredRecord>(pool, LIST, values);
}

/** The record of a session's end. */
export async function findSessionEnd(pool: Pool, sessionId: string): Promise<StoredRecord | undefined> {
  const [row] = await query<StoredRecord>(pool, SESSION_END, [sessionId]);
  return row;
}

/** Exported lines of what an instance wrote, from a sequence on. */
export async function listOwnLines(pool: Pool, instance: string, from: bigint, limit: number) {
  const rows = await query<{ line: string }>(pool, OWN_LINES, [instance, from, limit]);
  return rows.map(({ line }) => line);
}

/** Key ids of the checkpoint keys that the log has a record of. */
export async function knownKeys(pool: Pool): Promise<Set<string>> {
  const rows = await query<{ detail: string }>(pool, KNOWN_KEYS, []);
  return new Set(rows.map(({ detail }) => detail));
}
