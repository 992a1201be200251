import type { Pool } from "pg";
import type { Head } from "../domain/audit-chain.ts";
import type { Checkpoint } from "../domain/signed-note.ts";
import { query } from "../store/query.ts";

interface Row {
  size: string;
  head_hash: string;
  prev: string;
  digest: string;
  note: string;
  log_id: string;
  createdAt: Date;
}

/** A checkpoint as it is stored. */
export interface StoredCheckpoint extends Checkpoint {
  createdAt: Date;
}

/** Checkpoints and what they are made of. */
export interface CheckpointStore {
  /** The log's id and its head. */
  head(): Promise<Head & { logId: string }>;
  newest(): Promise<StoredCheckpoint | undefined>;
  /** The one with the smallest size from `size` on. */
  covering(size: bigint): Promise<StoredCheckpoint | undefined>;
  /** In ascending size, after `size`. */
  list(afterSize: bigint, limit: number): Promise<StoredCheckpoint[]>;
  /** Exported lines of the records after `after`, up to `to`. */
  lines(after: bigint, to: bigint, limit: number): Promise<string[]>;
  /** Stores one that extends the newest; false when another replica came first. */
  add(checkpoint: Checkpoint): Promise<boolean>;
}

const COLUMNS = `c.size, c.head_hash, c.prev, c.digest, c.note, c.created_at AS "createdAt",
  (SELECT h.log_id FROM proxy.audit_head h) AS log_id`;
const HEAD = { name: "audit_head", text: "SELECT sequence, hash, log_id FROM proxy.audit_head" };
const NEWEST = {
  name: "audit_newest_checkpoint",
  text: `SELECT ${COLUMNS} FROM proxy.audit_checkpoints c ORDER BY c.size DESC LIMIT 1`,
};
const COVERING = {
  name: "audit_covering_checkpoint",
  text: `SELECT ${COLUMNS} FROM proxy.audit_checkpoints c WHERE c.size >= $1 ORDER BY c.size LIMIT 1`,
};
const LIST = {
  name: "audit_list_checkpoints",
  text: `SELECT ${COLUMNS} FROM proxy.audit_checkpoints c WHERE c.size > $1 ORDER BY c.size LIMIT $2`,
};
const LINES = {
  name: "audit_lines",
  text: `SELECT proxy.audit_line(r) AS line FROM proxy.audit_records r
         WHERE r.sequence > $1 AND r.sequence <= $2 ORDER BY r.sequence LIMIT $3`,
};
const ADD = {
  name: "audit_add_checkpoint",
  text: "SELECT proxy.add_checkpoint($1, $2, $3, $4, $5) AS added",
};

/** Makes the store of checkpoints. */
export function createCheckpointStore(pool: Pool): CheckpointStore {
  const find = async (statement: { name: string; text: string }, values: unknown[]) =>
    (await query<Row>(pool, statement, values)).map(toCheckpoint);
  return {
    head: async () => {
      const [row] = await query<{ sequence: string; hash: string; log_id: string }>(pool, HEAD, []);
      if (!row) throw new Error("the audit log has no head");
      return { sequence: BigInt(row.sequence), hash: row.hash, logId: row.log_id };
    },
    newest: async () => (await find(NEWEST, []))[0],
    covering: async (size) => (await find(COVERING, [size]))[0],
    list: (afterSize, limit) => find(LIST, [afterSize, limit]),
    lines: async (...values) => (await query<{ line: string }>(pool, LINES, values)).map(({ line }) => line),
    add: async ({ size, headHash, prev, digest, note }) => {
      const [row] = await query<{ added: boolean }>(pool, ADD, [size, headHash, prev, digest, note]);
      return row?.added === true;
    },
  };
}

function toCheckpoint(row: Row): StoredCheckpoint {
  return {
    logId: row.log_id,
    size: BigInt(row.size),
    headHash: row.head_hash,
    prev: row.prev,
    digest: row.digest,
    note: row.note,
    createdAt: row.createdAt,
  };
}
