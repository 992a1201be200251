import { Repository } from "../../gen/ganglion/types/v1/repository.ts";
import { combinedEffect } from "../domain/append.ts";
import type { NewSession } from "../ports/session-store.ts";
import { EVENT_COLUMNS } from "./append-statements.ts";
import type { Statement } from "./database.ts";
import { writeMetadata } from "./session-row.ts";

/** CREATE_SESSION stores a session, its settings, its first events and the request id, all or nothing. */
export const CREATE_SESSION: Statement = {
  name: "session_create",
  text: `WITH request AS (
    INSERT INTO session.request_ids (workspace_id, method, request_id, request_digest, resource_id)
    SELECT $1, $3, $4, $5::bytea, $2 WHERE $4::text IS NOT NULL
  ), created AS (
    INSERT INTO session.sessions (workspace_id, session_id, head, status, runnable, runnable_at, agent_id,
      agent_version, environment_id)
    VALUES ($1::text, $2::text, $6::bigint, $7, $8::boolean, CASE WHEN $8::boolean THEN clock_timestamp() END, $9, $10, $11)
    RETURNING workspace_id, session_id, created_at
  ), settings AS (
    INSERT INTO session.session_settings (workspace_id, session_id, title, metadata, agent_json, environment_json,
      vault_ids, budget_cents, repositories, own_vault_id)
    VALUES ($1, $2, $12, $13, $14, $15, $16, $26, $27::bytea[], $28)
  ), stored AS (
    INSERT INTO session.events (${EVENT_COLUMNS})
    SELECT c.workspace_id, c.session_id, e.ord, e.event_id, e.type, e.thread_id, 0, e.actor_role, e.actor_subject,
      e.traceparent, e.may_ignore, e.body, e.digest, c.created_at
    FROM created c, unnest($17::text[], $18::text[], $19::text[], $20::smallint[], $21::text[], $22::text[],
      $23::boolean[], $24::bytea[], $25::bytea[]) WITH ORDINALITY
      AS e(event_id, type, thread_id, actor_role, actor_subject, traceparent, may_ignore, body, digest, ord)
  )
  SELECT created_at FROM created`,
};

/** Values of CREATE_SESSION. */
export function createSessionValues(session: NewSession): unknown[] {
  const events = session.events.map(({ event }) => event);
  const { status, runnable } = combinedEffect(events);
  return [
    session.workspaceId,
    session.sessionId,
    session.request?.method ?? null,
    session.request?.requestId ?? null,
    session.request?.digest ?? null,
    events.length,
    status ?? "idle",
    runnable ?? false,
    session.agentId,
    session.agentVersion,
    session.environmentId,
    session.title,
    writeMetadata(session.metadata),
    session.agentJson,
    session.environmentJson,
    session.vaultIds,
    events.map((event) => event.id),
    events.map((event) => event.type),
    events.map((event) => event.threadId),
    session.events.map(({ actor }) => actor.role),
    session.events.map(({ actor }) => actor.subject),
    events.map((event) => event.traceparent),
    events.map((event) => event.mayIgnore),
    events.map((event) => event.body),
    events.map((event) => event.digest),
    session.budgetCents,
    session.repositories.map((repository) => Buffer.from(Repository.encode(repository).finish())),
    session.ownVaultId,
  ];
}
