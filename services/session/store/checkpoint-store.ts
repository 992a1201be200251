import { positionAheadOfLog, sessionNotFound, staleEpoch } from "../domain/errors.ts";
import type { Checkpoint, CheckpointStore, NewCheckpoint } from "../ports/checkpoint-store.ts";
import type { Database, Statement } from "./database.ts";

// The key of the session's row is locked against its removal alone: appends go on.
const PUT: Statement = {
  name: "checkpoint_put",
  text: `WITH held AS MATERIALIZED (
      SELECT s.workspace_id, s.session_id FROM session.sessions s
      WHERE s.session_id = $1 AND s.owner = $2 AND s.epoch = $3 AND s.head >= $4 FOR KEY SHARE
    ), kept AS (
      INSERT INTO session.checkpoints AS c (workspace_id, session_id, format, position, data)
      SELECT workspace_id, session_id, $5::text, $4::bigint, $6::bytea FROM held
      ON CONFLICT (workspace_id, session_id, format) DO UPDATE SET position = excluded.position, data = excluded.data,
        created_at = excluded.created_at WHERE c.position <= excluded.position
    )
    SELECT 1 AS one FROM held`,
};

const STATE: Statement = {
  name: "checkpoint_state",
  text: "SELECT head, owner, epoch FROM session.sessions WHERE session_id = $1",
};

const GET: Statement = {
  name: "checkpoint_get",
  text: `SELECT c.position, c.data FROM session.sessions s LEFT JOIN session.checkpoints c
      ON c.workspace_id = s.workspace_id AND c.session_id = s.session_id AND c.format = $3
    WHERE s.session_id = $1 AND ($2::text IS NULL OR s.workspace_id = $2)`,
};

/** Cached folds in PostgreSQL. */
export class PgCheckpointStore implements CheckpointStore {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  async put(checkpoint: NewCheckpoint, signal?: AbortSignal): Promise<void> {
    const { sessionId, lease, position, format, data } = checkpoint;
    const values = [sessionId, lease.owner, lease.epoch, position, format, data];
    const [kept] = await this.#database.run(PUT, values, signal);
    if (kept) return;
    const [row] = await this.#database.run(STATE, [sessionId], signal);
    if (!row) throw sessionNotFound(sessionId);
    if (row.owner !== lease.owner || row.epoch !== lease.epoch) throw staleEpoch(row.epoch);
    throw positionAheadOfLog(row.head);
  }

  async get(
    sessionId: string,
    scope: string | null,
    format: string,
    signal?: AbortSignal,
  ): Promise<Checkpoint | "none" | undefined> {
    const [row] = await this.#database.run(GET, [sessionId, scope, format], signal);
    if (!row) return undefined;
    return row.position === null ? "none" : { position: row.position, data: row.data };
  }
}
