import { EventEmitter, once } from "node:events";
import { GanglionError } from "../../../services/common/errors/ganglion-error.ts";
import type { EmitEventsRequest } from "../../../services/gen/ganglion/session/v1/session_service.ts";
import type { Event } from "../../../services/gen/ganglion/types/v1/event.ts";
import { type Caller, emit } from "../../contract/session/session-kit.ts";
import type { Attempt, Outcome, Read, Seen, Taken, Watched } from "./history.ts";

// Nobody says what became of a call that ended with one of these.
const AMBIGUOUS = new Set(["UNAVAILABLE", "DEADLINE_EXCEEDED", "CANCELLED", "UNKNOWN"]);

/** Records everything that is done to one session, with times. */
export class Recorder {
  readonly sessionId: string;
  readonly attempts: Attempt[] = [];
  readonly taken: Taken[] = [];
  readonly reads: Read[] = [];
  readonly watched: Watched[] = [];
  readonly #made = new EventEmitter();

  constructor(sessionId: string) {
    this.sessionId = sessionId;
  }

  /** Tries to append; what is neither an answer nor a refusal nor a lost call is thrown. */
  async append(
    caller: Caller,
    events: readonly Event[],
    more: Partial<EmitEventsRequest>,
    timeoutMs: number,
  ): Promise<Outcome> {
    const begun = performance.now();
    const outcome = await emit(caller, this.sessionId, [...events], more, { timeoutMs }).then(
      ({ stored }): Outcome => ({
        kind: "acknowledged",
        stored: stored.map(({ eventId, position, isDuplicate }) => ({
          id: eventId,
          position: Number(position),
          isDuplicate,
        })),
      }),
      outcomeOf,
    );
    this.attempts.push({
      ids: events.map(({ id }) => id),
      ...(more.expectedPosition === undefined ? {} : { expected: Number(more.expectedPosition) }),
      ...(more.epoch === undefined ? {} : { epoch: Number(more.epoch) }),
      begun,
      ended: performance.now(),
      outcome,
    });
    this.#made.emit("attempt");
    return outcome;
  }

  /** Resolves when an attempt has been made that fits. */
  async attempted(fits: (attempt: Attempt) => boolean): Promise<void> {
    while (!this.attempts.some(fits)) await once(this.#made, "attempt");
  }
}

function outcomeOf(error: unknown): Outcome {
  if (!(error instanceof GanglionError)) throw error;
  if (AMBIGUOUS.has(error.code)) return { kind: "ambiguous" };
  // A fault of the service is neither.
  if (error.code === "INTERNAL") throw error;
  return { kind: "refused", reason: error.reason };
}

/** True for what a server or its database that was killed makes of a call. */
export function isLost(error: unknown): boolean {
  return error instanceof GanglionError && AMBIGUOUS.has(error.code);
}

/** Position and id of an event. */
export function seenOf({ position, id }: Event): Seen {
  return { position: Number(position), id };
}
