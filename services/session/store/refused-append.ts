import type { GanglionError } from "../../common/errors/ganglion-error.ts";
import { type Append, bringsInput, type StoredAt } from "../domain/append.ts";
import {
  budgetReached,
  idReused,
  positionConflict,
  sessionEnded,
  sessionNotFound,
  staleEpoch,
} from "../domain/errors.ts";
import type { Database, Row, Statement } from "./database.ts";

const SESSION_STATE: Statement = {
  name: "append_state",
  text: `SELECT head, status, owner, epoch, is_budget_paused FROM session.sessions
    WHERE session_id = $1 AND ($2::text IS NULL OR workspace_id = $2)`,
};

const STORED_EVENTS: Statement = {
  name: "append_stored",
  text: `SELECT e.event_id, e.position, e.body_digest, e.created_at
    FROM session.sessions s JOIN session.events e ON e.workspace_id = s.workspace_id AND e.session_id = s.session_id
    WHERE s.session_id = $1 AND ($2::text IS NULL OR s.workspace_id = $2) AND e.event_id = ANY ($3::text[])`,
};

/** Which of an append's events the log already has; throws ID_REUSED when one has another body. */
export async function findStored(
  database: Database,
  append: Append,
  signal?: AbortSignal,
): Promise<Map<string, StoredAt>> {
  const ids = append.events.map(({ id }) => id);
  const rows = await database.run(STORED_EVENTS, [append.sessionId, append.scope, ids], signal);
  const digests = new Map(append.events.map(({ id, digest }) => [id, digest]));
  const stored = new Map<string, StoredAt>();
  for (const row of rows) {
    const digest = digests.get(row.event_id);
    if (!digest || Buffer.compare(digest, row.body_digest) !== 0) throw idReused(row.event_id);
    stored.set(row.event_id, {
      eventId: row.event_id,
      position: row.position,
      at: row.created_at,
      isDuplicate: true,
    });
  }
  return stored;
}

/** What the session's row says to an append that was refused. */
export interface Refusal {
  /** The reason, or undefined when nothing stands against the append any more. */
  readonly reason: GanglionError | undefined;
  /** True when an append whose events are all in the log is to be answered with where they are. */
  readonly isAnsweredByDuplicates: boolean;
  readonly head: bigint;
}

/** Why the statement changed nothing, read after the fact. */
export async function explainRefusal(
  database: Database,
  append: Append,
  signal?: AbortSignal,
): Promise<Refusal> {
  const [row] = await database.run(SESSION_STATE, [append.sessionId, append.scope], signal);
  if (!row) return { reason: sessionNotFound(append.sessionId), isAnsweredByDuplicates: false, head: 0n };
  const head: bigint = row.head;
  if (isStale(append, row)) return { reason: staleEpoch(row.epoch), isAnsweredByDuplicates: false, head };
  if (row.status === "terminated") return { reason: sessionEnded(), isAnsweredByDuplicates: true, head };
  if (row.is_budget_paused && bringsInput(append.events)) {
    return { reason: budgetReached(), isAnsweredByDuplicates: true, head };
  }
  if (append.expectedPosition !== null && append.expectedPosition !== head) {
    return { reason: positionConflict(head), isAnsweredByDuplicates: true, head };
  }
  return { reason: undefined, isAnsweredByDuplicates: true, head };
}

// An ended session has no holder any more; what a harness hears of it then is that it ended.
function isStale(append: Append, row: Row): boolean {
  if (!append.lease) return false;
  if (row.epoch !== append.lease.epoch) return true;
  return row.owner !== append.lease.owner && row.status !== "terminated";
}
