import type { Hono } from "hono";
import { newId } from "../../common/ids/new-id.ts";
import type { Event } from "../../gen/ganglion/types/v1/event.ts";
import { eventsFromJson } from "../domain/event-from-json.ts";
import { eventToJson } from "../domain/event-to-json.ts";
import { readQuery } from "../domain/page-query.ts";
import { invalid, refuseUnknown } from "../domain/refuse.ts";
import { answer } from "./answer.ts";
import { streamEvents } from "./event-stream.ts";
import { storeLargeBlocks } from "./large-blocks.ts";
import { EVENT_LIST_KEYS, listEvents } from "./list-events.ts";
import { OpenStreams } from "./open-streams.ts";
import { readBody } from "./read-body.ts";
import type { RestDeps, RestVariables } from "./rest-deps.ts";

const DELTA_TYPES = ["agent.message", "agent.thinking"];
const MAX_DELTA_TYPES = 100;

/** What an event carries on the wire of REST but not in the log. */
const TYPE_NAMES: Record<string, string> = {
  userMessage: "user.message",
  userInterrupt: "user.interrupt",
  userToolConfirmation: "user.tool_confirmation",
  userCustomToolResult: "user.custom_tool_result",
  userToolResult: "user.tool_result",
};

/** eventRoutes adds /v1/sessions/{id}/events; returns what ends all streams when the gateway is shutting down. */
export function eventRoutes(app: Hono<{ Variables: RestVariables }>, deps: RestDeps): OpenStreams {
  const { sessions } = deps;
  const streams = new OpenStreams(deps.limits);

  app.post("/v1/sessions/:id/events", async (c) => {
    const sessionId = c.req.param("id");
    const body = await readBody(c);
    refuseUnknown(body, ["events"]);
    const events = eventsFromJson(body.events, "events", () => newId("sevt"));
    const { stored } = await sessions.emitEvents(
      {
        sessionId,
        events: await storeLargeBlocks(sessions, sessionId, events, c.get("call")),
        expectedPosition: undefined,
        epoch: undefined,
      },
      c.get("call"),
    );
    const [first] = stored;
    if (first) streams.noteSent(sessionId, first.position);
    const data = events.map((event, index) => {
      const { position, createTime } = stored[index] ?? { position: 0n, createTime: undefined };
      const type = TYPE_NAMES[event.body?.$case ?? ""] ?? "";
      return eventToJson({ ...event, type, position, createTime } satisfies Event, null);
    });
    return answer(c, { data });
  });

  app.get("/v1/sessions/:id/events", async (c) => {
    const query = readQuery(new URL(c.req.url).search, EVENT_LIST_KEYS);
    return answer(c, await listEvents(sessions, c.req.param("id"), query, c.get("call")));
  });

  app.get("/v1/sessions/:id/events/stream", async (c) => {
    const { event_deltas: deltas = [] } = readQuery(new URL(c.req.url).search, ["event_deltas"]);
    if (deltas.length > MAX_DELTA_TYPES)
      throw invalid("event_deltas", `must have at most ${MAX_DELTA_TYPES} values`);
    const unknown = deltas.find((type) => !DELTA_TYPES.includes(type));
    if (unknown !== undefined) throw invalid("event_deltas", `must be of ${DELTA_TYPES.join(", ")}`);
    return streamEvents({ ...deps, streams }, c, c.req.param("id"), new Set(deltas));
  });

  return streams;
}
