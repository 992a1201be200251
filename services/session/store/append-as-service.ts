import type { Append, NewEvent } from "../domain/append.ts";
import { APPEND_ONE, appendOneValues } from "./append-statements.ts";
import type { Connection, Row } from "./database.ts";

/** appendAsService appends an event of the service's own to a session whose row the transaction holds; returns its position. */
export async function appendAsService(
  connection: Connection,
  actor: Append["actor"],
  row: Row,
  event: NewEvent,
): Promise<bigint> {
  const append: Append = {
    sessionId: row.session_id,
    scope: row.workspace_id,
    lease: null,
    expectedPosition: row.head,
    actor,
    events: [event],
  };
  const [done] = await connection.run(APPEND_ONE, appendOneValues(append));
  if (!done) throw new Error("a locked session refused an append");
  return done.head;
}
