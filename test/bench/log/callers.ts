import pg from "pg";
import { newId } from "../../../services/common/ids/new-id.ts";
import { Role } from "../../../services/gen/ganglion/types/v1/access.ts";
import type { Append } from "../../../services/session/domain/append.ts";
import { APPEND_ONE, appendOneValues } from "../../../services/session/store/append-statements.ts";
import { connectionConfig } from "../../../services/session/store/database.ts";
import { encodeNewEvent } from "../../../services/session/store/event-codec.ts";
import type { LeasedSession, LogStand } from "../stands/log-stand.ts";
import { SAMPLE_EVENT, SAMPLE_TYPE } from "./sample-event.ts";

/** Appends once and resolves when it is durable. */
export type Caller = () => Promise<void>;

/** A caller through EmitEvents: gRPC, mutual TLS, the whole service. */
export function grpcCaller(
  { harness }: LogStand,
  { sessionId, epoch }: LeasedSession,
  batch: number,
): Caller {
  return async () => {
    const events = Array.from({ length: batch }, () => ({ ...SAMPLE_EVENT, id: newId("sevt") }));
    await harness.log.emitEvents({ sessionId, events, epoch });
  };
}

/**
 * A caller that runs the service's own statement on a connection of its own, logged in as the service, with the same
 * checks of lease and epoch. Events are encoded beforehand: nothing but the statement and its answer is measured.
 */
export async function directCaller(
  { postgres, owner, cleanUps }: LogStand,
  { sessionId, epoch }: LeasedSession,
  batch: number,
): Promise<Caller> {
  const client = new pg.Client(connectionConfig(() => postgres.connection("ganglion_session")));
  client.on("error", () => {});
  await client.connect();
  cleanUps.add(() => client.end());
  const encoded = encodeNewEvent(SAMPLE_EVENT, SAMPLE_TYPE);
  const fixed = {
    sessionId,
    scope: null,
    lease: { owner, epoch },
    expectedPosition: null,
    actor: { role: Role.ROLE_HARNESS, subject: owner },
  };
  return async () => {
    const events = Array.from({ length: batch }, () => ({ ...encoded, id: newId("sevt") }));
    const append: Append = { ...fixed, events };
    const { rows } = await client.query({ ...APPEND_ONE, values: appendOneValues(append) });
    if (rows.length !== 1) throw new Error("the statement refused an append");
  };
}
