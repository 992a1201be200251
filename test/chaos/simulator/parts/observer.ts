import type { Event } from "../../../../services/gen/ganglion/types/v1/event.ts";
import { type Action, decide } from "../../../../services/harness/domain/decide.ts";
import { fold } from "../../../../services/harness/domain/fold.ts";
import {
  type Call,
  emptyState,
  type SessionState,
} from "../../../../services/harness/domain/session-state.ts";
import type { SimDatabase } from "./sim-database.ts";

/** Follows a session's log in the database itself: what the users of the simulation see, and what the checks go by. */
export class Observer {
  readonly sessionId: string;
  readonly showsAll: boolean;
  readonly events: Event[] = [];
  readonly state: SessionState = emptyState();
  readonly #database: SimDatabase;
  #next: Action["type"] = "stop";

  /** `showsAll`: the model is shown all that was said, however long ago. */
  constructor(database: SimDatabase, sessionId: string, showsAll: boolean) {
    this.#database = database;
    this.showsAll = showsAll;
    this.sessionId = sessionId;
  }

  /** Reads on to the log's end. */
  look(): SessionState {
    if (this.#database.sessions.get(this.sessionId)?.events.length === this.events.length) return this.state;
    for (const event of this.#database.eventsOf(this.sessionId, this.events.length)) {
      this.events.push(event);
      fold(this.state, event);
    }
    this.#next = decide(this.state).type;
    return this.state;
  }

  /** Calls that wait for the user's word. */
  waiting(): Call[] {
    const { openCalls, waitingFor } = this.look();
    return waitingFor.flatMap((id) => openCalls.get(id) ?? []);
  }

  /** True when nobody has anything to do: no brain, and no user either. */
  get isAtRest(): boolean {
    const { openCalls } = this.look();
    return (this.#next === "wait" || this.#next === "stop") && openCalls.size === 0;
  }
}
