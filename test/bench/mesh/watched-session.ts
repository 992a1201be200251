import { createClient, type MeshClient } from "../../../services/common/grpc/create-client.ts";
import {
  SessionServiceService,
  type WatchEventsResponse,
} from "../../../services/gen/ganglion/session/v1/session_service.ts";
import type { Door } from "../stands/create-sessions.ts";
import { createdAtMs, userMessage } from "./play-turn.ts";

const TURN_TIMEOUT_MS = 30_000;

/** One turn as its client saw it. */
export interface Turn {
  /** From the call of EmitEvents to the first preview text on the watch. */
  readonly firstTextMs: number;
  /** Wall clock, milliseconds. */
  readonly sentAt: number;
  readonly firstTextAt: number;
  /** When the log stored the turn's first event of each type; wall clock, milliseconds. */
  readonly storedAt: ReadonlyMap<string, number>;
}

/** A session with a client that watches it, previews included, from before the first message. */
export class WatchedSession {
  readonly #log: MeshClient<typeof SessionServiceService>;
  readonly #sessionId: string;
  readonly #watch: AsyncIterator<WatchEventsResponse>;

  private constructor(log: MeshClient<typeof SessionServiceService>, sessionId: string) {
    this.#log = log;
    this.#sessionId = sessionId;
    const request = { sessionId, afterPosition: 0n, types: [], includePreviews: true, fromHead: true };
    this.#watch = log.watchEvents(request)[Symbol.asyncIterator]();
  }

  /** Opens the watch and resolves when it is in place; the connection is warm then. */
  static async open({ address, service, tls }: Door, sessionId: string): Promise<WatchedSession> {
    const log = createClient(SessionServiceService, address, tls, service);
    const session = new WatchedSession(log, sessionId);
    await session.#watch.next();
    return session;
  }

  /** Sends a user.message and follows the turn to its end. */
  async say(text: string): Promise<Turn> {
    const storedAt = new Map<string, number>();
    const message = userMessage(text);
    const begun = performance.now();
    const sentAt = performance.timeOrigin + begun;
    let firstTextMs = Number.NaN;
    const sent = this.#log.emitEvents({ sessionId: this.#sessionId, events: [message] });
    const isLate = AbortSignal.timeout(TURN_TIMEOUT_MS);
    for (;;) {
      const { value, done } = await this.#watch.next();
      if (done || isLate.aborted) throw new Error(`session ${this.#sessionId} did not finish its turn`);
      const part = value.message;
      if (part?.$case === "preview" && part.value.message?.$case === "text" && Number.isNaN(firstTextMs)) {
        firstTextMs = performance.now() - begun;
      }
      if (part?.$case !== "event") continue;
      const { type } = part.value;
      if (!storedAt.has(type)) storedAt.set(type, createdAtMs(part.value));
      if (type === "session.error") throw new Error(`session ${this.#sessionId} failed in a turn`);
      if (type === "session.status_idle") break;
    }
    await sent;
    if (Number.isNaN(firstTextMs)) throw new Error(`session ${this.#sessionId} showed no preview`);
    return { firstTextMs, sentAt, firstTextAt: sentAt + firstTextMs, storedAt };
  }

  close(): void {
    void this.#watch.return?.();
    this.#log.close();
  }
}
