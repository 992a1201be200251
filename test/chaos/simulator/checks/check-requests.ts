import { Event } from "../../../../services/gen/ganglion/types/v1/event.ts";
import { planCompaction } from "../../../../services/harness/domain/context/plan-compaction.ts";
import { projectCompaction } from "../../../../services/harness/domain/context/project-compaction.ts";
import { fold } from "../../../../services/harness/domain/fold.ts";
import { projectRequest } from "../../../../services/harness/domain/project-request.ts";
import { PURPOSE } from "../../../../services/harness/domain/proto-values.ts";
import { emptyState, type SessionState } from "../../../../services/harness/domain/session-state.ts";
import { sha256 } from "../../../../services/harness/domain/sha256.ts";

/**
 * Every request that the log records is the one that the log gives: two folds of it, one of them of events that went
 * over the wire once more, build the same bytes, and the bytes that were sent have their digest.
 */
export function checkRequests(events: readonly Event[]): string[] {
  const faults: string[] = [];
  const one = emptyState();
  const other = emptyState();
  for (const event of events) {
    if (event.body?.$case !== "spanModelRequestStart") continue;
    const { consumedPosition, requestSha256, purpose } = event.body.value;
    if (requestSha256.length === 0) continue;
    const isCompaction = purpose === PURPOSE.COMPACTION;
    const at = isCompaction ? event.position - 1n : consumedPosition;
    const build = isCompaction ? buildCompaction : projectRequest;
    try {
      const body = build(foldTo(events, at, one));
      const again = build(foldTo(events, at, other, overTheWire));
      if (!body.equals(again)) faults.push(`two folds up to ${at} build two requests`);
      if (!sha256(body).equals(requestSha256)) {
        faults.push(`the request of ${event.position} is not the one that was sent`);
      }
    } catch (error) {
      faults.push(`the log gives no request for ${event.position}: ${(error as Error).message}`);
    }
  }
  return faults;
}

function foldTo(
  events: readonly Event[],
  position: bigint,
  state: SessionState,
  pass: (event: Event) => Event = (event) => event,
): SessionState {
  for (const event of events.slice(Number(state.position), Number(position))) fold(state, pass(event));
  return state;
}

function buildCompaction(state: SessionState): Buffer {
  const plan = planCompaction(state);
  return plan && plan !== "limit" ? projectCompaction(state, plan) : Buffer.alloc(0);
}

function overTheWire(event: Event): Event {
  return Event.decode(Event.encode(event).finish());
}
