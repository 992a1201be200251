import { EVENT_COLUMNS } from "./append-statements.ts";
import type { Statement } from "./database.ts";

// Whether the owner of the session `s` still beats, by the database's clock; `ttl` is a parameter in milliseconds.
function isAlive(ttl: string): string {
  return `EXISTS (SELECT 1 FROM session.harness_instances h WHERE h.spiffe_id = s.owner AND h.boot_id = s.owner_boot
    AND h.beat_at > clock_timestamp() - ${ttl}::int * interval '1 millisecond')`;
}

/**
 * Records a sign of life and says which boot beat before. Its commit does not wait for the disk: a sign that a crash of
 * the database loses only makes its instance look dead, which is safe, and on a busy disk the wait could be what kills it.
 */
export const BEAT: Statement = {
  name: "lease_beat",
  text: `WITH previous AS (SELECT boot_id FROM session.harness_instances WHERE spiffe_id = $1::text)
    INSERT INTO session.harness_instances AS h (spiffe_id, boot_id, active_sessions, is_draining)
    SELECT $1, $2::text, $3::int, $4::boolean FROM (SELECT set_config('synchronous_commit', 'off', true)) lazily
    ON CONFLICT (spiffe_id) DO UPDATE SET boot_id = excluded.boot_id, active_sessions = excluded.active_sessions,
      is_draining = excluded.is_draining, beat_at = clock_timestamp()
    RETURNING (SELECT boot_id FROM previous) AS previous_boot_id`,
};

/** Frees what other boots of the instance held, and keeps in mind that nobody gave it back, in the order in which appends lock rows. */
export const FREE_OTHER_BOOTS: Statement = {
  name: "lease_free",
  text: `WITH held AS MATERIALIZED (
      SELECT session_id FROM session.sessions WHERE owner = $1 AND owner_boot <> $2 ORDER BY session_id FOR NO KEY UPDATE
    )
    UPDATE session.sessions s SET owner = NULL, owner_boot = NULL, is_orphaned = true, updated_at = clock_timestamp()
    FROM held WHERE s.session_id = held.session_id AND s.owner = $1 AND s.owner_boot <> $2
    RETURNING s.session_id, s.epoch`,
};

/** Locks the session that has waited longest and that nobody else is just taking. */
export const FIND_RUNNABLE: Statement = {
  name: "lease_find",
  text: `SELECT s.session_id FROM session.sessions s
    WHERE s.runnable AND (s.owner IS NULL OR NOT ${isAlive("$1")})
    ORDER BY s.runnable_at LIMIT 1 FOR NO KEY UPDATE OF s SKIP LOCKED`,
};

/** Locks one session. */
export const LOCK: Statement = {
  name: "lease_lock",
  text: "SELECT 1 AS one FROM session.sessions WHERE session_id = $1 FOR NO KEY UPDATE",
};

/**
 * Whether the instance's heartbeat is of that boot and young enough; with it the lease that a request of this boot got
 * and still holds, when there is one.
 */
export const CHECK_TAKER: Statement = {
  name: "lease_check_taker",
  text: `SELECT EXISTS (SELECT 1 FROM session.harness_instances h WHERE h.spiffe_id = $1 AND h.boot_id = $2
        AND h.beat_at > clock_timestamp() - $5::int * interval '1 millisecond') AS is_beating, r.*
    FROM (SELECT 1) asked LEFT JOIN (
      SELECT s.workspace_id, s.session_id, s.head, s.status, s.owner, s.epoch, ${isAlive("$5")} AS alive
      FROM session.sessions s WHERE s.owner = $1 AND s.owner_boot = $2 AND s.lease_request = $3::text
        AND ($4::text IS NULL OR s.session_id = $4) AND s.status <> 'terminated'
    ) r ON true`,
};

/** The lease as it is, and whether its holder is alive. */
export const GET_LEASE: Statement = {
  name: "lease_get",
  text: `SELECT s.workspace_id, s.session_id, s.head, s.status, s.runnable, s.owner, s.owner_boot, s.epoch, s.is_orphaned,
      ${isAlive("$3")} AS alive
    FROM session.sessions s WHERE s.session_id = $1 AND ($2::text IS NULL OR s.workspace_id = $2)`,
};

/**
 * Makes an instance the owner of a session whose row is locked, writes the event that says so, and raises the fence:
 * no token of the old epoch outlives the new one (law L7).
 */
export const TAKE: Statement = {
  name: "lease_take",
  text: `WITH moved AS (
    UPDATE session.sessions SET owner = $2, owner_boot = $3, epoch = $4::bigint, lease_request = $5, is_orphaned = false,
      head = head + 1, updated_at = clock_timestamp()
    WHERE session_id = $1 RETURNING workspace_id, session_id, head, clock_timestamp() AS at
  ), stored AS (
    INSERT INTO session.events (${EVENT_COLUMNS})
    SELECT workspace_id, session_id, head, $6, $7, '', 0, $8::smallint, $9::text, '', false, $10::bytea, $11::bytea, at
    FROM moved
  )
  SELECT head, proxy.raise_fence(session_id, $4::bigint, false) FROM moved`,
};

/** Gives a lease back; a session whose holder has seen all of it and that is idle waits for input then. */
export const RELEASE: Statement = {
  name: "lease_release",
  text: `UPDATE session.sessions SET owner = NULL, owner_boot = NULL, updated_at = clock_timestamp(),
      runnable = runnable AND NOT (status = 'idle' AND coalesce(head = $4::bigint, false))
    WHERE session_id = $1 AND owner = $2 AND epoch = $3 RETURNING runnable`,
};

/** Number of sessions that can be leased now, up to a cap. */
export const COUNT_RUNNABLE: Statement = {
  name: "lease_count",
  text: `SELECT count(*)::int AS count FROM (SELECT 1 FROM session.sessions s
    WHERE s.runnable AND (s.owner IS NULL OR NOT ${isAlive("$1")}) LIMIT $2::int) found`,
};
