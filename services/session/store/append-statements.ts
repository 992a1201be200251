import { type Append, bringsInput, combinedEffect, type NewEvent } from "../domain/append.ts";
import type { Statement } from "./database.ts";

/** Columns of an event, in the order in which the statements give them. */
export const EVENT_COLUMNS = `workspace_id, session_id, position, event_id, type, thread_id, epoch, actor_role,
  actor_subject, traceparent, may_ignore, body, body_digest, created_at`;

/**
 * APPEND_ONE is a whole append (law L2): everything that may refuse it is checked in the UPDATE that takes the
 * positions, so that no lock is held across a round trip. [M28, M29]
 */
export const APPEND_ONE: Statement = {
  name: "append_one",
  text: `WITH moved AS (
    UPDATE session.sessions s SET
      head = s.head + $7,
      updated_at = clock_timestamp(),
      status = coalesce($8, s.status),
      runnable = coalesce($9, s.runnable),
      runnable_at = CASE WHEN $9 AND NOT s.runnable THEN clock_timestamp() ELSE s.runnable_at END,
      usage = coalesce($10, s.usage),
      active_ms = coalesce($11, s.active_ms),
      stop_reason = coalesce($12, s.stop_reason),
      list_cost = coalesce($23::bigint, s.list_cost),
      is_budget_paused = coalesce($24::boolean, s.is_budget_paused)
    WHERE s.session_id = $1 AND ($2::text IS NULL OR s.workspace_id = $2)
      AND s.status <> 'terminated'
      AND ($3::text IS NULL OR (s.owner = $3 AND s.epoch = $4::bigint))
      AND ($5::bigint IS NULL OR s.head = $5::bigint)
      AND NOT ($25::boolean AND s.is_budget_paused)
    RETURNING s.workspace_id, s.session_id, s.head, s.head - $7::bigint AS base, clock_timestamp() AS at,
      s.owner IS NOT NULL AS held
  ), stored AS (
    INSERT INTO session.events (${EVENT_COLUMNS})
    SELECT m.workspace_id, m.session_id, m.base + e.ord, e.event_id, e.type, e.thread_id, coalesce($4::bigint, 0),
      $6::smallint, $13::text, e.traceparent, e.may_ignore, substring($21::bytea FROM e.start FOR e.size),
      substring($22::bytea FROM e.ord::int * 32 - 31 FOR 32), m.at
    FROM moved m, unnest($14::text[], $15::text[], $16::text[], $17::text[], $18::boolean[], $19::int[], $20::int[])
      WITH ORDINALITY AS e(event_id, type, thread_id, traceparent, may_ignore, start, size, ord)
  )
  SELECT head, at, held FROM moved`,
};

/** Values of APPEND_ONE. */
export function appendOneValues(append: Append): unknown[] {
  const { events } = append;
  const effect = combinedEffect(events);
  return [
    append.sessionId,
    append.scope,
    append.lease?.owner ?? null,
    append.lease?.epoch ?? null,
    append.expectedPosition,
    append.actor.role,
    events.length,
    effect.status,
    effect.runnable,
    effect.usage,
    effect.activeMs,
    effect.stopReason,
    append.actor.subject,
    arrayOf(events, (event) => event.id),
    arrayOf(events, (event) => event.type),
    arrayOf(events, (event) => event.threadId),
    arrayOf(events, (event) => event.traceparent),
    arrayOf(events, (event) => event.mayIgnore),
    ...bodies(events),
    effect.listCost,
    effect.isBudgetPaused,
    bringsInput(events),
  ];
}

/**
 * APPEND_MANY is several appends that share one statement and one commit. Rows are locked in the order of their
 * ids, or two of these statements would wait for each other. A refused call is missing from the answer. Calls for
 * the same session take their positions in the order of the request.
 */
export const APPEND_MANY: Statement = {
  name: "append_many",
  text: `WITH call AS (
    SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::int[], $6::text[], $7::boolean[],
        $8::bytea[], $9::bigint[], $10::bytea[], $11::smallint[], $12::text[], $24::bigint[], $25::boolean[],
        $26::boolean[])
      WITH ORDINALITY AS c(session_id, scope, owner, epoch, n, status, runnable, usage, active_ms, stop_reason,
        actor_role, actor_subject, list_cost, is_budget_paused, brings_input, ord)
  ), locked AS MATERIALIZED (
    SELECT s.workspace_id, s.session_id, s.head, s.owner, s.epoch, s.is_budget_paused FROM session.sessions s
    WHERE s.session_id = ANY ($1::text[]) AND s.status <> 'terminated'
    ORDER BY s.session_id FOR NO KEY UPDATE
  ), allowed AS MATERIALIZED (
    SELECT c.*, l.workspace_id, l.head + sum(c.n) OVER (PARTITION BY l.session_id ORDER BY c.ord) AS head,
      clock_timestamp() AS at, l.owner IS NOT NULL AS held
    FROM locked l JOIN call c ON c.session_id = l.session_id
    WHERE (c.scope IS NULL OR c.scope = l.workspace_id)
      AND (c.owner IS NULL OR (c.owner = l.owner AND c.epoch = l.epoch))
      AND NOT (c.brings_input AND l.is_budget_paused)
  ), moved AS (
    UPDATE session.sessions s SET
      head = t.head,
      updated_at = clock_timestamp(),
      status = coalesce(t.status, s.status),
      runnable = coalesce(t.runnable, s.runnable),
      runnable_at = CASE WHEN t.runnable AND NOT s.runnable THEN clock_timestamp() ELSE s.runnable_at END,
      usage = coalesce(t.usage, s.usage),
      active_ms = coalesce(t.active_ms, s.active_ms),
      stop_reason = coalesce(t.stop_reason, s.stop_reason),
      list_cost = coalesce(t.list_cost, s.list_cost),
      is_budget_paused = coalesce(t.is_budget_paused, s.is_budget_paused)
    FROM (
      SELECT a.session_id, max(a.head) AS head,
        (array_agg(a.status ORDER BY a.ord DESC) FILTER (WHERE a.status IS NOT NULL))[1] AS status,
        (array_agg(a.runnable ORDER BY a.ord DESC) FILTER (WHERE a.runnable IS NOT NULL))[1] AS runnable,
        (array_agg(a.usage ORDER BY a.ord DESC) FILTER (WHERE a.usage IS NOT NULL))[1] AS usage,
        (array_agg(a.active_ms ORDER BY a.ord DESC) FILTER (WHERE a.active_ms IS NOT NULL))[1] AS active_ms,
        (array_agg(a.stop_reason ORDER BY a.ord DESC) FILTER (WHERE a.stop_reason IS NOT NULL))[1] AS stop_reason,
        (array_agg(a.list_cost ORDER BY a.ord DESC) FILTER (WHERE a.list_cost IS NOT NULL))[1] AS list_cost,
        (array_agg(a.is_budget_paused ORDER BY a.ord DESC) FILTER (WHERE a.is_budget_paused IS NOT NULL))[1]
          AS is_budget_paused
      FROM allowed a GROUP BY a.session_id
    ) t
    WHERE s.session_id = t.session_id
  ), stored AS (
    INSERT INTO session.events (${EVENT_COLUMNS})
    SELECT a.workspace_id, a.session_id, a.head - a.n + e.nth, e.event_id, e.type, e.thread_id, coalesce(a.epoch, 0),
      a.actor_role, a.actor_subject, e.traceparent, e.may_ignore, substring($22::bytea FROM e.start FOR e.size),
      substring($23::bytea FROM e.row::int * 32 - 31 FOR 32), a.at
    FROM unnest($13::int[], $14::int[], $15::text[], $16::text[], $17::text[], $18::text[], $19::boolean[],
        $20::int[], $21::int[])
      WITH ORDINALITY AS e(ord, nth, event_id, type, thread_id, traceparent, may_ignore, start, size, row)
    JOIN allowed a ON a.ord = e.ord
  )
  SELECT ord::int AS ord, head::bigint AS head, at, held FROM allowed`,
};

/** Values of APPEND_MANY. */
export function appendManyValues(appends: readonly Append[]): unknown[] {
  const effects = appends.map(({ events }) => combinedEffect(events));
  const events = appends.flatMap((append) => append.events);
  return [
    arrayOf(appends, (append) => append.sessionId),
    arrayOf(appends, (append) => append.scope),
    arrayOf(appends, (append) => append.lease?.owner ?? null),
    arrayOf(appends, (append) => append.lease?.epoch ?? null),
    arrayOf(appends, (append) => append.events.length),
    arrayOf(effects, (effect) => effect.status),
    arrayOf(effects, (effect) => effect.runnable),
    effects.map((effect) => effect.usage),
    arrayOf(effects, (effect) => effect.activeMs),
    effects.map((effect) => effect.stopReason),
    arrayOf(appends, (append) => append.actor.role),
    arrayOf(appends, (append) => append.actor.subject),
    ...places(appends),
    arrayOf(events, (event) => event.id),
    arrayOf(events, (event) => event.type),
    arrayOf(events, (event) => event.threadId),
    arrayOf(events, (event) => event.traceparent),
    arrayOf(events, (event) => event.mayIgnore),
    ...bodies(events),
    arrayOf(effects, (effect) => effect.listCost),
    arrayOf(effects, (effect) => effect.isBudgetPaused),
    arrayOf(appends, (append) => bringsInput(append.events)),
  ];
}

// Of each event the number of its append, and its own in there.
function places(appends: readonly Append[]): [string, string] {
  let ords = "";
  let nths = "";
  for (const [index, { events }] of appends.entries()) {
    ords += `,${index + 1}`.repeat(events.length);
    for (let nth = 1; nth <= events.length; nth++) nths += `,${nth}`;
  }
  return [`{${ords.slice(1)}}`, `{${nths.slice(1)}}`];
}

type Element = string | number | bigint | boolean | null;
// Nothing in it that the form of an array would have to escape. Quotes keep the word NULL a word.
const PLAIN = /^[\w.:/-]*$/;

// An array as PostgreSQL reads it; the driver makes the same of one, slowly, and gets what has something to escape.
function arrayOf<T>(items: readonly T[], of: (item: T) => Element): unknown {
  let text = "";
  for (const item of items) {
    const element = of(item);
    if (typeof element !== "string") text += `,${element === null ? "NULL" : element}`;
    else if (PLAIN.test(element)) text += `,"${element}"`;
    else return items.map(of);
  }
  return `{${text.slice(1)}}`;
}

// Bodies and digests travel as one value each, in binary: an array of bytea would go as hexadecimal text.
function bodies(events: readonly NewEvent[]): unknown[] {
  let next = 1;
  let starts = "";
  let sizes = "";
  for (const { body } of events) {
    starts += `,${next}`;
    sizes += `,${body.length}`;
    next += body.length;
  }
  return [
    `{${starts.slice(1)}}`,
    `{${sizes.slice(1)}}`,
    Buffer.concat(events.map(({ body }) => body)),
    Buffer.concat(events.map(({ digest }) => digest)),
  ];
}
