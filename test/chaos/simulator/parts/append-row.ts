import { type Append, combinedEffect } from "../../../../services/session/domain/append.ts";
import type { SessionRow, SimDatabase } from "./sim-database.ts";

/** The one statement of an append: refused whole (undefined), or done; "clash" = an id is there already. */
export function appendRow(
  database: SimDatabase,
  append: Append,
): { row: SessionRow; head: bigint; at: string } | "clash" | undefined {
  const row = database.sessions.get(append.sessionId);
  const { rules } = database;
  if (!row || (append.scope !== null && append.scope !== row.workspaceId)) return undefined;
  if (row.status === "terminated") return undefined;
  const { lease, expectedPosition } = append;
  const isHolder = lease === null || (row.owner === lease.owner && row.epoch === lease.epoch);
  if (!isHolder && rules.checksEpoch) return undefined;
  const head = BigInt(row.events.length);
  if (expectedPosition !== null && expectedPosition !== head && rules.checksExpectedPosition)
    return undefined;
  if (rules.checksDuplicates && append.events.some(({ id }) => row.positions.has(id))) return "clash";
  const at = timeText(database.time.now);
  if (rules.isDurable || !database.random.chance(0.02)) store(database, row, append, at);
  const effect = combinedEffect(append.events);
  row.status = effect.status ?? row.status;
  if (effect.runnable === true && !row.runnable) row.runnableAt = database.time.now;
  row.runnable = effect.runnable ?? row.runnable;
  if (row.status === "terminated") database.raiseFence(row.sessionId, lease?.epoch ?? 0n, true);
  return { row, head: head + BigInt(append.events.length), at };
}

function store(database: SimDatabase, row: SessionRow, append: Append, at: string): void {
  const from = row.events.length;
  for (const event of append.events) {
    const position = row.events.length + 1;
    row.positions.set(event.id, position);
    row.events.push({
      row: {
        body: event.body,
        event_id: event.id,
        position: BigInt(position),
        created_at: at,
        type: event.type,
        actor_role: append.actor.role,
        actor_subject: append.actor.subject,
        thread_id: event.threadId,
        epoch: append.lease?.epoch ?? 0n,
        traceparent: event.traceparent,
        may_ignore: event.mayIgnore,
      },
      digest: event.digest,
      ownerThen: row.owner,
      actor: append.actor,
    });
  }
  for (const hear of database.listeners) hear(row, from);
}

/** A point in time as PostgreSQL writes it. */
export function timeText(ms: number): string {
  const iso = new Date(Date.UTC(2026, 0, 1) + ms).toISOString();
  return `${iso.slice(0, 10)} ${iso.slice(11, 19)}.${iso.slice(20, 23)}+00`;
}
