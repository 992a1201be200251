// Whatever has to happen before records are written hands them on: the planner may not change that order.

/** Appends records, each with its guard. */
export const WRITE_RECORDS = {
  name: "write_records",
  text: "SELECT w.refusal, w.sequence, w.line FROM proxy.write_records($1) w ORDER BY w.ordinal",
};

/**
 * Appends records, each with its guard, and behind them the dispatches that go with them: `$2` has one, or null, for each of
 * the first. A dispatch whose decision was refused is left out. Rows of the first come first.
 */
export const WRITE_TOGETHER = {
  name: "write_together",
  text: `
WITH w AS MATERIALIZED (SELECT r.* FROM proxy.write_records($1) r),
     next AS MATERIALIZED (
       SELECT jsonb_agg(e.value ORDER BY e.n) AS entries
       FROM jsonb_array_elements($2::jsonb) WITH ORDINALITY AS e (value, n) JOIN w ON w.ordinal = e.n - 1
       WHERE w.refusal IS NULL AND jsonb_typeof(e.value) <> 'null'),
     d AS MATERIALIZED (
       SELECT r.* FROM next CROSS JOIN LATERAL proxy.write_records(coalesce(next.entries, '[]')) r)
SELECT a.refusal, a.sequence, a.line
FROM (SELECT 1 AS part, w.* FROM w UNION ALL SELECT 2, d.* FROM d) a ORDER BY a.part, a.ordinal`,
};

/** Appends a decision and claims the call's key, when the guard holds and the key is new. */
export const WRITE_AND_CLAIM = {
  name: "write_and_claim",
  text: `
WITH w AS MATERIALIZED (SELECT refusal, sequence, line FROM proxy.write_records($1)),
     c AS (INSERT INTO proxy.calls (session_id, call_key, epoch, request_digest, request_id, instance, boot_id, state)
           SELECT $2, $3, $4, $5, $6, $7, $8, 'claimed' FROM w WHERE w.refusal IS NULL
           ON CONFLICT DO NOTHING RETURNING 1)
SELECT w.refusal, w.sequence, w.line, EXISTS (SELECT FROM c) AS claimed FROM w`,
};

/** The same, and behind it the dispatch, when the key is claimed: the call is under way then. */
export const WRITE_CLAIM_AND_DISPATCH = {
  name: "write_claim_and_dispatch",
  text: `
WITH w AS MATERIALIZED (SELECT r.* FROM proxy.write_records($1) r),
     c AS (INSERT INTO proxy.calls (session_id, call_key, epoch, request_digest, request_id, instance, boot_id, state,
                                    dispatched_at, is_repeatable)
           SELECT $2, $3, $4, $5, $6, $7, $8, 'dispatched', now(), $10 FROM w WHERE w.refusal IS NULL
           ON CONFLICT DO NOTHING RETURNING $9::jsonb AS entries),
     d AS MATERIALIZED (SELECT r.* FROM c CROSS JOIN LATERAL proxy.write_records(c.entries) r)
SELECT a.refusal, a.sequence, a.line, EXISTS (SELECT FROM d) AS claimed
FROM (SELECT 1 AS part, w.* FROM w UNION ALL SELECT 2, d.* FROM d) a ORDER BY a.part`,
};

/**
 * Appends a dispatch, when the request still holds the claim; the call is under way only if the record was taken. Each part
 * hands on to the next, so that the planner cannot change their order.
 */
export const WRITE_DISPATCH = {
  name: "write_dispatch",
  text: `
WITH held AS MATERIALIZED (
       SELECT $1::jsonb AS entries FROM proxy.calls
       WHERE session_id = $2 AND call_key = $3 AND request_id = $4 AND state = 'claimed' FOR UPDATE),
     w AS MATERIALIZED (SELECT r.* FROM held CROSS JOIN LATERAL proxy.write_records(held.entries) r),
     begun AS (UPDATE proxy.calls SET state = 'dispatched', dispatched_at = now(), is_repeatable = $5
               FROM w WHERE w.refusal IS NULL AND session_id = $2 AND call_key = $3 AND request_id = $4)
SELECT w.refusal, w.sequence, w.line FROM w`,
};

/** Appends an outcome and stores the call's result; a call that certainly did not run frees its key. */
export const WRITE_END = {
  name: "write_end",
  text: `
WITH w AS MATERIALIZED (SELECT r.* FROM proxy.write_records($1) r),
     done AS (UPDATE proxy.calls SET state = 'finished', result = $5, finished_at = now()
              FROM w
              WHERE w.refusal IS NULL AND session_id = $2 AND call_key = $3 AND request_id = $4 AND state <> 'finished'
                AND $5::bytea IS NOT NULL),
     freed AS (DELETE FROM proxy.calls USING w
               WHERE w.refusal IS NULL AND session_id = $2 AND call_key = $3 AND request_id = $4 AND state <> 'finished'
                 AND $5::bytea IS NULL)
SELECT w.refusal, w.sequence, w.line FROM w`,
};
