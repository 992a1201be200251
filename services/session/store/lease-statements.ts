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

// What is known of a session before it is taken.
const SEEN = `s.workspace_id, s.session_id, s.head, s.status, s.owner, s.owner_boot, s.epoch, s.is_orphaned`;

/**
 * What an instance that asks for a lease has to know, without a lock: whether its heartbeat is of that boot and young
 * enough; the lease that the same request of this boot got and still holds ("given"); the session that it names, or those
 * that nobody alive drives, the longest wait first. What is said of a session is looked at again by TAKE.
 */
export const LOOK: Statement = {
  name: "lease_look",
  text: `SELECT EXISTS (SELECT 1 FROM session.harness_instances h WHERE h.spiffe_id = $1 AND h.boot_id = $2
        AND h.beat_at > clock_timestamp() - $5::int * interval '1 millisecond') AS is_beating, c.*
    FROM (SELECT 1) asked LEFT JOIN LATERAL (
      (SELECT 'given' AS found_as, ${SEEN}, ${isAlive("$5")} AS alive FROM session.sessions s
        WHERE s.owner = $1 AND s.owner_boot = $2 AND s.lease_request = $3::text
          AND ($4::text IS NULL OR s.session_id = $4) AND s.status <> 'terminated' LIMIT 1)
      UNION ALL
      (SELECT 'named', ${SEEN}, ${isAlive("$5")} FROM session.sessions s WHERE s.session_id = $4)
      UNION ALL
      (SELECT 'free', ${SEEN}, false FROM session.sessions s
        WHERE $4 IS NULL AND s.runnable AND (s.owner IS NULL OR NOT ${isAlive("$5")})
        ORDER BY s.runnable_at LIMIT $6::int)
    ) c ON true`,
};

/** The lease as it is, and whether its holder is alive. */
export const GET_LEASE: Statement = {
  name: "lease_get",
  text: `SELECT s.workspace_id, s.session_id, s.head, s.status, s.runnable, s.owner, s.owner_boot, s.epoch, s.is_orphaned,
      ${isAlive("$3")} AS alive
    FROM session.sessions s WHERE s.session_id = $1 AND ($2::text IS NULL OR s.workspace_id = $2)`,
};

/**
 * Makes an instance the owner of a session that is as it was seen, writes the event that says so, and raises the fence,
 * all in one statement: no token of the old epoch outlives the new one (law L7). Changes nothing where somebody else was
 * faster.
 */
function take(name: string, mayBeTaken: string, locked: string): Statement {
  return {
    name,
    text: `WITH target AS MATERIALIZED (
      SELECT s.session_id FROM session.sessions s
      WHERE s.session_id = $1 AND s.epoch = $4::bigint - 1 AND s.owner IS NOT DISTINCT FROM $12::text
        AND s.owner_boot IS NOT DISTINCT FROM $13::text AND s.is_orphaned = $14::boolean AND s.status <> 'terminated'
        AND ${mayBeTaken}
      FOR NO KEY UPDATE OF s ${locked}
    ), moved AS (
      UPDATE session.sessions s SET owner = $2, owner_boot = $3, epoch = $4::bigint, lease_request = $5,
        is_orphaned = false, head = s.head + 1, updated_at = clock_timestamp()
      FROM target t WHERE s.session_id = t.session_id
      RETURNING s.workspace_id, s.session_id, s.head, s.status, clock_timestamp() AS at
    ), stored AS (
      INSERT INTO session.events (${EVENT_COLUMNS})
      SELECT workspace_id, session_id, head, $6, $7, '', 0, $8::smallint, $9::text, '', false, $10::bytea, $11::bytea, at
      FROM moved
    )
    SELECT workspace_id, session_id, head, status, at, proxy.raise_fence(session_id, $4::bigint, false) FROM moved`,
  };
}

const IS_FREE = `s.owner IS NULL OR NOT ${isAlive("$15")}`;

/** Takes a session that wants a driver. One whose row is locked is left alone: somebody may be taking it, and there are others. */
export const TAKE = take("lease_take", `s.runnable AND (${IS_FREE})`, "SKIP LOCKED");

/** Takes the session that was named, whether there is something to do or not; its holder may take it anew. */
export const TAKE_NAMED = take(
  "lease_take_named",
  `(${IS_FREE} OR (s.owner = $2 AND s.owner_boot = $3))`,
  "",
);

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
