import type { Pool } from "pg";
import type { NewRecord } from "../domain/new-record.ts";
import { query } from "../store/query.ts";

/** A record as it stands in the log. */
export type StoredRecord = Omit<NewRecord, "request_bytes" | "response_bytes" | "redactions"> & {
  sequence: string;
  created_at: Date;
  request_bytes: string;
  response_bytes: string;
  redactions: string;
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

const LIST = {
  name: "list_records",
  text: `SELECT * FROM proxy.audit_records
         WHERE sequence > $1 AND ($3 = '' OR session_id = $3) AND ($4 = '' OR request_id = $4)
         ORDER BY sequence LIMIT $2`,
};

/** Reads the log in the order in which it was written. */
export function listRecords(pool: Pool, { afterSequence, limit, sessionId, requestId }: RecordQuery) {
  return query<StoredRecord>(pool, LIST, [afterSequence, limit, sessionId, requestId]);
}
