import { EVENT_COLUMNS } from "./append-statements.ts";
import type { Statement } from "./database.ts";

/** Locks the source against its removal alone: it may go on meanwhile. */
export const GET_SOURCE: Statement = {
  name: "fork_source",
  text: `SELECT s.workspace_id, s.session_id, s.head, s.status, s.epoch, e.body, t.vault_ids, t.own_vault_id
    FROM session.sessions s
    JOIN session.session_settings t ON t.workspace_id = s.workspace_id AND t.session_id = s.session_id
    JOIN session.events e ON e.workspace_id = s.workspace_id AND e.session_id = s.session_id AND e.position = 1
    WHERE s.session_id = $1 AND ($2::text IS NULL OR s.workspace_id = $2) FOR KEY SHARE OF s`,
};

/** Last position of the next piece: at least one event, and no more than fits one statement. */
export const END_OF_PIECE: Statement = {
  name: "fork_end_of_piece",
  text: `SELECT max(position) AS position FROM (
      SELECT e.position, sum(octet_length(e.body)) OVER (ORDER BY e.position) AS bytes
      FROM session.events e WHERE e.workspace_id = $1 AND e.session_id = $2
        AND e.position > $3::bigint AND e.position <= least($4::bigint, $3::bigint + $5::int)
    ) piece WHERE piece.bytes <= $6::int OR piece.position = $3::bigint + 1`,
};

/** Copies events as they are: ids, bodies, actors, epochs and times. */
export const COPY_PIECE: Statement = {
  name: "fork_copy",
  text: `INSERT INTO session.events (${EVENT_COLUMNS})
    SELECT e.workspace_id, $3::text, e.position, e.event_id, e.type, e.thread_id, e.epoch, e.actor_role,
      e.actor_subject, e.traceparent, e.may_ignore, e.body, e.body_digest, e.created_at
    FROM session.events e WHERE e.workspace_id = $1 AND e.session_id = $2
      AND e.position > $4::bigint AND e.position <= $5::bigint`,
};

/** What moves a session's row or settings in a piece; the body of a client's input does not matter. */
export const EFFECTS_OF_PIECE: Statement = {
  name: "fork_effects",
  text: `SELECT e.type, CASE WHEN e.type = ANY ($6::text[]) THEN NULL ELSE e.body END AS body
    FROM session.events e WHERE e.workspace_id = $1 AND e.session_id = $2
      AND e.position > $3::bigint AND e.position <= $4::bigint AND e.type = ANY ($5::text[])
    ORDER BY e.position`,
};

/** Stores an event of the fork's own. */
export const ADD_EVENT: Statement = {
  name: "fork_add_event",
  text: `INSERT INTO session.events (${EVENT_COLUMNS})
    VALUES ($1, $2, $3, $4, $5, $6, 0, $7, $8, $9, $10, $11, $12, clock_timestamp())`,
};

/** Makes the fork's row from what its log says. */
export const ADD_FORK: Statement = {
  name: "fork_add",
  text: `WITH created AS (
    INSERT INTO session.sessions (workspace_id, session_id, head, status, runnable, runnable_at, epoch, agent_id,
      agent_version, environment_id, usage, active_ms, stop_reason, list_cost, is_budget_paused)
    SELECT s.workspace_id, $3::text, $4::bigint, $5::text, $6::boolean,
      CASE WHEN $6::boolean THEN clock_timestamp() END, $7::bigint, s.agent_id, s.agent_version, s.environment_id,
      $8::bytea, $9::bigint, $10::bytea, $11::bigint, $12::boolean
    FROM session.sessions s WHERE s.workspace_id = $1 AND s.session_id = $2
  )
  INSERT INTO session.session_settings (workspace_id, session_id, title, metadata, agent_json, environment_json,
    vault_ids, budget_cents, forked_from, forked_at, repositories, own_vault_id)
  SELECT t.workspace_id, $3, $13, $14, $15, t.environment_json, t.vault_ids, $16::bigint, $2, $17::bigint,
    t.repositories, t.own_vault_id
  FROM session.session_settings t WHERE t.workspace_id = $1 AND t.session_id = $2`,
};

/** Lets the fork have the content that the source's events name; the content itself is shared. */
export const SHARE_PAYLOADS: Statement = {
  name: "fork_share_payloads",
  text: `INSERT INTO session.payloads (workspace_id, session_id, payload_id, upload_id, size_bytes, sha256, content_type)
    SELECT p.workspace_id, $3::text, p.payload_id, p.upload_id, p.size_bytes, p.sha256, p.content_type
    FROM session.payloads p JOIN session.payload_names n USING (workspace_id, session_id, payload_id)
    WHERE p.workspace_id = $1 AND p.session_id = $2`,
};

/** Keeps that content as long as the fork. */
export const NAME_PAYLOADS: Statement = {
  name: "fork_name_payloads",
  text: `INSERT INTO session.payload_names (workspace_id, session_id, payload_id)
    SELECT p.workspace_id, p.session_id, p.payload_id FROM session.payloads p
    WHERE p.workspace_id = $1 AND p.session_id = $2`,
};
