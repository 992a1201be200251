import type { Statement } from "./database.ts";

/** The session of a payload that is to be put, and the payload when it has it. */
export const PAYLOAD_STATE: Statement = {
  name: "payload_state",
  text: `SELECT s.workspace_id, s.status, s.owner, s.epoch, p.payload_id, p.size_bytes, p.sha256, p.content_type
    FROM session.sessions s LEFT JOIN session.payloads p
      ON p.workspace_id = s.workspace_id AND p.session_id = s.session_id AND p.payload_id = $3
    WHERE s.session_id = $1 AND ($2::text IS NULL OR s.workspace_id = $2)`,
};

/** One piece of an upload. */
export const ADD_PIECE: Statement = {
  name: "payload_piece",
  text: `INSERT INTO session.payload_chunks (workspace_id, upload_id, nth, data) VALUES ($1, $2, $3::int, $4::bytea)
    ON CONFLICT DO NOTHING`,
};

/**
 * Makes an upload a payload when all its pieces are there and the session takes it; no row when not. The key of the
 * session's row is locked against its removal alone: appends go on.
 */
export const FINISH_PAYLOAD: Statement = {
  name: "payload_finish",
  text: `WITH held AS MATERIALIZED (
      SELECT s.workspace_id, s.session_id FROM session.sessions s
      WHERE s.session_id = $1 AND s.workspace_id = $2 AND s.status <> 'terminated'
        AND ($3::text IS NULL OR (s.owner = $3 AND s.epoch = $4::bigint)) FOR KEY SHARE
    ), pieces AS (
      SELECT sum(octet_length(c.data)) AS bytes FROM session.payload_chunks c
      WHERE c.workspace_id = $2 AND c.upload_id = $5
    )
    INSERT INTO session.payloads (workspace_id, session_id, payload_id, upload_id, size_bytes, sha256, content_type)
    SELECT h.workspace_id, h.session_id, $6, $5, $7::bigint, $8::bytea, $9 FROM held h, pieces p WHERE p.bytes = $7::bigint
    ON CONFLICT DO NOTHING RETURNING 1 AS one`,
};

/** Removes an upload that did not become a payload. */
export const DISCARD_UPLOAD: Statement = {
  name: "payload_discard",
  text: "SELECT session.discard_upload($1, $2)",
};

/** A payload of a session. */
export const FIND_PAYLOAD: Statement = {
  name: "payload_find",
  text: `SELECT s.workspace_id, p.payload_id, p.upload_id, p.size_bytes, p.sha256, p.content_type
    FROM session.sessions s LEFT JOIN session.payloads p
      ON p.workspace_id = s.workspace_id AND p.session_id = s.session_id AND p.payload_id = $3
    WHERE s.session_id = $1 AND ($2::text IS NULL OR s.workspace_id = $2)`,
};

/** A piece from an offset in it on. */
export const READ_PIECE: Statement = {
  name: "payload_read",
  text: `SELECT CASE WHEN $4::int = 0 THEN data ELSE substring(data FROM $4::int + 1) END AS data
    FROM session.payload_chunks WHERE workspace_id = $1 AND upload_id = $2 AND nth = $3::int`,
};

/** Marks payloads as named, so that they stay, and says what they are. */
export const KEEP_PAYLOADS: Statement = {
  name: "payload_keep",
  text: `WITH found AS MATERIALIZED (
      SELECT p.* FROM session.sessions s
      JOIN session.payloads p ON p.workspace_id = s.workspace_id AND p.session_id = s.session_id
      WHERE s.session_id = $1 AND ($2::text IS NULL OR s.workspace_id = $2) AND p.payload_id = ANY ($3::text[])
    ), named AS (
      INSERT INTO session.payload_names (workspace_id, session_id, payload_id)
      SELECT workspace_id, session_id, payload_id FROM found ORDER BY payload_id ON CONFLICT DO NOTHING
    )
    SELECT workspace_id, payload_id, upload_id, size_bytes, sha256, content_type FROM found`,
};

/** Removes what is old and not named. */
export const REMOVE_OLD_PAYLOADS: Statement = {
  name: "payload_remove_old",
  text: "SELECT session.remove_old_payloads() AS removed",
};
