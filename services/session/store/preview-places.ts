import type { PreviewPlaces } from "../ports/preview-places.ts";
import type { Database, Statement } from "./database.ts";

// What a crash of the database loses of this is noted again with the next stream: nobody waits for the disk.
const LAZILY = "(SELECT set_config('synchronous_commit', 'off', true)) lazily";

const NOTE: Statement = {
  name: "preview_note",
  text: `INSERT INTO session.preview_places AS p (workspace_id, session_id, epoch, address)
    SELECT s.workspace_id, s.session_id, $2::bigint, $3::text FROM session.sessions s, ${LAZILY}
    WHERE s.session_id = $1 AND s.epoch = $2::bigint
    ON CONFLICT (workspace_id, session_id) DO UPDATE SET epoch = excluded.epoch, address = excluded.address
      WHERE p.epoch <= excluded.epoch
    RETURNING 1 AS one`,
};
const CLEAR: Statement = {
  name: "preview_clear",
  text: `DELETE FROM session.preview_places p USING session.sessions s, ${LAZILY}
    WHERE s.session_id = $1 AND p.workspace_id = s.workspace_id AND p.session_id = s.session_id
      AND p.epoch = $2::bigint AND p.address = $3`,
};
const FIND: Statement = {
  name: "preview_find",
  text: `SELECT p.address FROM session.sessions s
    JOIN session.preview_places p ON p.workspace_id = s.workspace_id AND p.session_id = s.session_id
    WHERE s.session_id = $1`,
};

const STORED: Statement = {
  name: "preview_stored",
  text: `SELECT e.event_id FROM session.sessions s
    JOIN session.events e ON e.workspace_id = s.workspace_id AND e.session_id = s.session_id
    WHERE s.session_id = $1 AND e.event_id = ANY ($2::text[])`,
};

/** Places in PostgreSQL. */
export class PgPreviewPlaces implements PreviewPlaces {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  async note(sessionId: string, epoch: bigint, address: string): Promise<boolean> {
    return (await this.#database.run(NOTE, [sessionId, epoch, address])).length > 0;
  }

  async clear(sessionId: string, epoch: bigint, address: string): Promise<void> {
    await this.#database.run(CLEAR, [sessionId, epoch, address]);
  }

  async find(sessionId: string): Promise<string | undefined> {
    const [row] = await this.#database.run(FIND, [sessionId]);
    return row?.address;
  }

  async stored(sessionId: string, eventIds: readonly string[]): Promise<string[]> {
    const rows = await this.#database.run(STORED, [sessionId, eventIds]);
    return rows.map((row) => row.event_id);
  }
}
