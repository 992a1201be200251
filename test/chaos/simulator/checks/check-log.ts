import { Role } from "../../../../services/gen/ganglion/types/v1/access.ts";
import type { SessionRow, SimDatabase } from "../parts/sim-database.ts";

/** Laws L2 and L3: dense, idempotent, what was confirmed is there, and one brain at a time. */
export function checkLog(database: SimDatabase): string[] {
  const faults: string[] = [];
  for (const row of database.sessions.values()) faults.push(...checkDense(row), ...checkEpochs(row));
  for (const { sessionId, eventId, position } of database.confirmed) {
    const stored = database.sessions.get(sessionId)?.events[Number(position) - 1];
    if (stored?.row.event_id !== eventId)
      faults.push(`${eventId} was confirmed at ${position} and is not there`);
  }
  for (const { sessionId, isFromLiving, taker } of database.takes) {
    if (isFromLiving) faults.push(`${taker} was given ${sessionId} while its holder lived`);
  }
  return faults;
}

function checkDense({ events }: SessionRow): string[] {
  const ids = new Set(events.map(({ row }) => row.event_id));
  const faults = ids.size === events.length ? [] : ["an event is in the log twice"];
  events.forEach(({ row }, i) => {
    if (row.position !== BigInt(i + 1)) faults.push(`position ${row.position} stands where ${i + 1} should`);
  });
  return faults;
}

function checkEpochs({ events }: SessionRow): string[] {
  const faults: string[] = [];
  let epoch = 0n;
  for (const { row, actor, ownerThen } of events) {
    if (row.type === "ganglion.lease_acquired") {
      epoch += 1n;
      continue;
    }
    if (actor.role !== Role.ROLE_HARNESS) continue;
    if (row.epoch !== epoch) faults.push(`${row.position} is of epoch ${row.epoch} in epoch ${epoch}`);
    if (actor.subject !== ownerThen) faults.push(`${row.position} is of ${actor.subject}, who held no lease`);
  }
  return faults;
}
