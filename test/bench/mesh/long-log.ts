import { readFileSync } from "node:fs";
import { join } from "node:path";
import pg from "pg";
import { GetEventsRequest } from "../../../services/gen/ganglion/session/v1/session_service.ts";
import { Event } from "../../../services/gen/ganglion/types/v1/event.ts";
import { encodeNewEvent } from "../../../services/session/store/event-codec.ts";
import { script } from "../../kit/stage.ts";
import type { MeshStand } from "../stands/mesh-stand.ts";
import { openLog } from "./open-log.ts";
import { playTurn } from "./play-turn.ts";

const BATCH = 2_000;
/** Event ids and the provider's ids of calls, by their exact length: what follows one in the encoding may be a letter too. */
const ID = /sevt_[0-9a-z]{26}|toolu_[0-9a-f]{24}/g;

/** Writes logs of any length: one real turn, played once, over and over under other ids. */
export interface LogWriter {
  /** Fills the log of an idle session that no brain has driven up to about that many events. */
  fill(sessionId: string, events: number): Promise<void>;
}

/** openLogWriter plays the turn that all logs consist of: a message, two commands one after the other, an answer. */
export async function openLogWriter(stand: MeshStand): Promise<LogWriter> {
  const turn = await playModelTurn(stand);
  const client = new pg.Client(ownerOf(stand));
  await client.connect();
  stand.cleanUps.add(() => client.end());
  return {
    async fill(sessionId, count) {
      const { rows } = await client.query("SELECT head FROM session.sessions WHERE session_id = $1", [
        sessionId,
      ]);
      const first = Number(rows[0].head);
      const events: Event[] = [];
      while (events.length + turn.length <= count - first)
        events.push(...copyOf(turn, first + events.length));
      for (let from = 0; from < events.length; from += BATCH)
        await insert(client, sessionId, events.slice(from, from + BATCH));
      await client.query("UPDATE session.sessions SET head = $2 WHERE session_id = $1", [
        sessionId,
        first + events.length,
      ]);
      await client.query("ANALYZE session.events");
    },
  };
}

async function playModelTurn(stand: MeshStand): Promise<Event[]> {
  const log = await openLog(stand);
  const tools = [{ type: "agent_toolset_20260401" }];
  const definition = { name: "bench turn", model: "claude-opus-5-5", tools };
  const [sessionId = ""] = await stand.createSessions(1, definition);
  const call = (text: string, command: string) => ({ text, calls: [{ name: "bash", input: { command } }] });
  const text = script([
    call("I look at what is there.", "for n in $(seq 20); do echo line $n of a listing; done"),
    call("Now I count it.", "seq 20 | wc -l"),
    { text: "There are twenty lines, as there should be, and nothing else is in the folder." },
  ]);
  // The second one has a brain and a hand already: nothing but the turn is in it.
  await playTurn(log, sessionId, text);
  const seen = await playTurn(log, sessionId, text);
  const afterPosition = (seen[0]?.position ?? 1n) - 1n;
  const { events } = await log.getEvents(GetEventsRequest.fromPartial({ sessionId, afterPosition }));
  return events;
}

/** The turn as it would stand after `base` events: other ids of the same length, positions moved. */
function copyOf(turn: readonly Event[], base: number): Event[] {
  const mark = base.toString(32).padStart(6, "0");
  const start = Number(turn[0]?.position ?? 1n);
  const moved = (text: string) => text.replaceAll(ID, (id) => id.slice(0, -mark.length) + mark);
  return turn.map((event, index) => {
    const { id, type, createTime, actor, threadId, epoch, mayIgnore, body } = event;
    const bytes = Buffer.from(Event.encode(Event.fromPartial({ body })).finish());
    const copy = Event.decode(Buffer.from(moved(bytes.toString("latin1")), "latin1"));
    if (copy.body?.$case === "spanModelRequestStart")
      copy.body.value.consumedPosition += BigInt(base + 1 - start);
    const at = BigInt(base + index + 1);
    return { ...copy, id: moved(id), type, position: at, createTime, actor, threadId, mayIgnore, epoch };
  });
}

async function insert(client: pg.Client, sessionId: string, events: readonly Event[]): Promise<void> {
  const encoded = events.map((event) => ({ event, ...encodeNewEvent(event, event.type) }));
  await client.query(
    `INSERT INTO session.events (workspace_id, session_id, position, event_id, type, thread_id, epoch, actor_role,
       actor_subject, traceparent, may_ignore, body, body_digest)
     SELECT s.workspace_id, s.session_id, e.position, e.id, e.type, e.thread_id, 0, e.role, e.subject, '', false, e.body,
       e.digest
     FROM session.sessions s, unnest($2::bigint[], $3::text[], $4::text[], $5::text[], $6::int[], $7::text[],
       $8::bytea[], $9::bytea[]) AS e(position, id, type, thread_id, role, subject, body, digest)
     WHERE s.session_id = $1`,
    [
      sessionId,
      encoded.map(({ event }) => event.position),
      encoded.map(({ id }) => id),
      encoded.map(({ type }) => type),
      encoded.map(({ threadId }) => threadId),
      encoded.map(({ event }) => event.actor?.role ?? 0),
      encoded.map(({ event }) => event.actor?.subject ?? ""),
      encoded.map(({ body }) => body),
      encoded.map(({ digest }) => digest),
    ],
  );
}

function ownerOf({ mesh }: MeshStand): pg.ClientConfig {
  const file = (name: string) => readFileSync(join(mesh.tlsDir("migrations"), name), "utf8");
  const [host = "", port = ""] = mesh.address("postgres").split(":");
  const ssl = { ca: file("ca.pem"), cert: file("cert.pem"), key: file("key.pem") };
  return { host, port: Number(port), database: "ganglion", user: "ganglion_owner", ssl };
}
