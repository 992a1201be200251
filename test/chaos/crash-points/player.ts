import { createHash, randomUUID } from "node:crypto";
import { setTimeout as wait } from "node:timers/promises";
import { GanglionError } from "../../../services/common/errors/ganglion-error.ts";
import { createClient, type MeshClient } from "../../../services/common/grpc/create-client.ts";
import { newId } from "../../../services/common/ids/new-id.ts";
import {
  CreateSessionRequest,
  PutPayloadRequest,
  PutPayloadRequest_Header,
  SessionServiceService,
  UpdateSessionRequest,
  WatchEventsRequest,
} from "../../../services/gen/ganglion/session/v1/session_service.ts";
import { type ContentBlock, PayloadRef } from "../../../services/gen/ganglion/types/v1/content.ts";
import { Event } from "../../../services/gen/ganglion/types/v1/event.ts";
import type { CrashMesh } from "../../kit/crash/crash-mesh.ts";
import { readLog } from "../../kit/read-log.ts";
import type { AgentName } from "./agents.ts";
import type { Furniture } from "./furnish.ts";

const PATIENCE_MS = 30_000;
/** How often it is looked whether a lease was given back: nothing tells. */
const LOOK_MS = 20;
/** Codes with which a client of the mesh tries again: nobody has said no. */
const AGAIN = new Set(["UNAVAILABLE", "DEADLINE_EXCEEDED", "CANCELLED"]);

type Body = NonNullable<Event["body"]>;

/** A client that plays sessions, as stubborn as a good client has to be: every call is repeated under the same id. */
export class Player {
  readonly mesh: CrashMesh;
  readonly #sessions: MeshClient<typeof SessionServiceService>;
  readonly #furniture: Furniture;

  constructor(mesh: CrashMesh, furniture: Furniture) {
    this.mesh = mesh;
    this.#furniture = furniture;
    const address = mesh.addresses["session-1"] as string;
    this.#sessions = createClient(SessionServiceService, address, mesh.operator, "session");
  }

  /** Makes a session; returns its id. */
  async newSession(agent: AgentName): Promise<string> {
    const { agentIds, environmentId, vaultId } = this.#furniture;
    const request = CreateSessionRequest.fromPartial({
      ...{ requestId: randomUUID(), agentId: agentIds[agent], environmentId, vaultIds: [vaultId] },
    });
    const { session } = await this.#insist(() => this.#sessions.createSession(request));
    return session?.id ?? "";
  }

  /** Appends an event once; returns its position. */
  emit(sessionId: string, body: Body): Promise<bigint> {
    return this.emitAll(sessionId, [body]);
  }

  /** Appends events together, once; returns the last one's position. */
  emitAll(sessionId: string, bodies: readonly Body[]): Promise<bigint> {
    return this.append(sessionId, bodies.map(newEvent));
  }

  /** Appends events under the ids that they have; returns the last one's position. */
  async append(sessionId: string, events: Event[]): Promise<bigint> {
    const request = { sessionId, events, expectedPosition: undefined, epoch: undefined };
    const { stored } = await this.#insist(() => this.#sessions.emitEvents(request));
    return stored.at(-1)?.position ?? 0n;
  }

  /** Sends a user's message and waits until the session is idle again. */
  async turn(sessionId: string, text: string): Promise<Event> {
    return this.idleAfter(sessionId, await this.say(sessionId, text));
  }

  /** Sends a user's message; returns its position. */
  say(sessionId: string, text: string): Promise<bigint> {
    return this.emit(sessionId, userMessage(text));
  }

  /** The first session.status_idle after a position. */
  idleAfter(sessionId: string, position: bigint): Promise<Event> {
    return this.first(sessionId, position, (event) => event.type === "session.status_idle");
  }

  /** The first event after a position that fits, stored or still to come. */
  async first(sessionId: string, after: bigint, fits: (event: Event) => boolean): Promise<Event> {
    let position = after;
    const seen: string[] = [];
    const signal = AbortSignal.timeout(PATIENCE_MS);
    const request = () =>
      WatchEventsRequest.fromPartial({ sessionId, afterPosition: position, includePreviews: true });
    const watch = async (): Promise<Event> => {
      for await (const { position: at, message } of this.#sessions.watchEvents(request(), { signal })) {
        position = at;
        if (message?.$case !== "event") continue;
        seen.push(message.value.type);
        if (fits(message.value)) return message.value;
      }
      throw new GanglionError({ code: "UNAVAILABLE", reason: "ENDED", message: "the watch ended" });
    };
    try {
      return await this.#insist(watch, signal);
    } catch (error) {
      throw new Error(`what was waited for did not come; seen: ${seen.join(", ")}`, { cause: error });
    }
  }

  /** Stores a block beside the log; returns the block that names it. */
  async store(sessionId: string, block: { type: string }): Promise<ContentBlock> {
    const data = json(block);
    const payload = PayloadRef.fromPartial({
      payloadId: newId("payl"),
      sizeBytes: BigInt(data.length),
      sha256: createHash("sha256").update(data).digest(),
      contentType: "application/json",
    });
    const header = PutPayloadRequest_Header.fromPartial({
      ...{ sessionId, payloadId: payload.payloadId, sizeBytes: payload.sizeBytes },
      ...{ sha256: payload.sha256, contentType: payload.contentType },
    });
    const messages = [
      PutPayloadRequest.fromPartial({ message: { $case: "header", value: header } }),
      PutPayloadRequest.fromPartial({ message: { $case: "data", value: data } }),
    ];
    await this.#insist(() => this.#sessions.putPayload(messages));
    return { type: block.type, data: { $case: "payload", value: payload } };
  }

  /** Makes a session that begins with all of another's log; returns its id. */
  async fork(sessionId: string): Promise<string> {
    const position = BigInt((await this.log(sessionId)).length);
    const request = { requestId: randomUUID(), sessionId, position, title: undefined };
    const { session } = await this.#insist(() => this.#sessions.forkSession(request));
    return session?.id ?? "";
  }

  /** Changes, reads, archives and removes a session. */
  async end(sessionId: string): Promise<void> {
    const update = UpdateSessionRequest.fromPartial({ sessionId, title: "ended" });
    await this.#insist(() => this.#sessions.updateSession(update));
    await this.#insist(() => this.#sessions.getSession({ sessionId }));
    await this.released(sessionId);
    await this.#insist(() => this.#sessions.archiveSession({ sessionId }));
    try {
      await this.#insist(() => this.#sessions.deleteSession({ sessionId }));
    } catch (error) {
      // The first answer was lost: it is gone already.
      if (!GanglionError.is(error) || error.code !== "NOT_FOUND") throw error;
    }
  }

  /** Ends a session whatever it does. */
  async kill(sessionId: string): Promise<void> {
    await this.#insist(() => this.#sessions.killSession({ sessionId }));
  }

  /** Kills the brain of a session. */
  async killBrain(sessionId: string): Promise<void> {
    const { lease } = await this.#insist(() => this.#sessions.getLease({ sessionId }));
    const name = lease?.owner.split("/").at(-1);
    if (name) await this.mesh.process(name).kill();
  }

  /** Resolves when nobody drives the session any more. */
  async released(sessionId: string): Promise<void> {
    const signal = AbortSignal.timeout(PATIENCE_MS);
    for (;;) {
      const { lease } = await this.#insist(() => this.#sessions.getLease({ sessionId }));
      if (!lease || lease.owner === "") return;
      signal.throwIfAborted();
      await wait(LOOK_MS);
    }
  }

  /** The session's whole log. */
  log(sessionId: string): Promise<Event[]> {
    return readLog(sessionId, (request) => this.#insist(() => this.#sessions.getEvents(request)));
  }

  /** Closes the client. */
  close(): void {
    this.#sessions.close();
  }

  async #insist<T>(call: () => Promise<T>, signal = AbortSignal.timeout(PATIENCE_MS)): Promise<T> {
    for (;;) {
      try {
        return await call();
      } catch (error) {
        if (signal.aborted || !GanglionError.is(error) || !AGAIN.has(error.code)) throw error;
        // As soon as there is somebody to ask again.
        await this.#sessions.waitForReady(PATIENCE_MS).catch(() => {});
      }
    }
  }
}

/** An event with an id of its own. */
export function newEvent(body: Body): Event {
  return { ...Event.fromPartial({ id: newId("sevt") }), body };
}

/** A user's message. */
export function userMessage(text: string): Body {
  return { $case: "userMessage", value: { content: [textBlock(text)] } };
}

/** A text block as events carry it. */
export function textBlock(text: string) {
  return { type: "text", data: { $case: "json" as const, value: json({ type: "text", text }) } };
}

function json(value: unknown): Buffer {
  return Buffer.from(JSON.stringify(value));
}
