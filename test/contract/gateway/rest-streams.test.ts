import assert from "node:assert/strict";
import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import { type GatewayUnderTest, playApiKeys, startGateway } from "./gateway-kit.ts";
import { idle, openStream, PlayedLog, userMessage } from "./played-log.ts";

const KEY = "gk-rest-0123456789";

describe("streams of the REST API", () => {
  let mesh: GatewayUnderTest;
  const played = new PlayedLog();

  before(async () => {
    mesh = await startGateway([played.implementation(), playApiKeys(KEY)]);
  });
  after(() => mesh?.stop());
  beforeEach(() => played.clear());

  const call = (path: string, init: RequestInit = {}) =>
    fetch(`${mesh.rest}${path}`, { ...init, headers: { authorization: `Bearer ${KEY}`, ...init.headers } });
  const post = (path: string, body: unknown) => call(path, { method: "POST", body: JSON.stringify(body) });

  /** Reads frames until one is of that type; gives the types in order. */
  const readUntil = async (stream: IncomingMessage, type: string): Promise<string[]> => {
    let raw = "";
    for await (const chunk of stream) {
      raw += chunk;
      if (raw.includes(`event: ${type}\n`)) break;
    }
    return [...raw.matchAll(/^event: (.+)$/gm)].map(([, name]) => name as string);
  };

  it("opens a stream at once, although nothing happens, and begins at the head of an idle session", async () => {
    played.events = [userMessage(1n, "old"), idle(2n)];
    const stream = await openStream(mesh.rest, KEY);
    assert.equal(stream.headers["content-type"], "text/event-stream");
    assert.equal((await played.watch(1)).afterPosition, 2n);
    stream.destroy();
  });

  it("begins with the turn in progress", async () => {
    played.events = [userMessage(1n, "old"), idle(2n), userMessage(3n, "now")];
    const types = await readUntil(await openStream(mesh.rest, KEY), "user.message");
    assert.deepEqual(types, ["user.message"]);
    assert.equal(played.watches[0]?.afterPosition, 2n);
  });

  it("shows a turn that was over before its sender listened", async () => {
    played.events = [userMessage(1n, "old"), idle(2n)];
    await post("/v1/sessions/sesn_1/events", { events: [{ type: "user.message", content: "now" }] });
    played.events = [...played.events, userMessage(3n, "now"), idle(4n)];
    const types = await readUntil(await openStream(mesh.rest, KEY), "session.status_idle");
    assert.deepEqual(types, ["user.message", "session.status_idle"]);
    // Only the one who sent gets it: the next stream begins at the head.
    const next = await openStream(mesh.rest, KEY);
    assert.equal((await played.watch(2)).afterPosition, 4n);
    next.destroy();
  });

  it("shows nothing of a tool's progress, which the REST API does not know, and all the rest [B092]", async () => {
    const start = { $case: "start" as const, value: { eventType: "agent.message" } };
    played.previews = [
      {
        eventId: "sevt_9",
        message: { $case: "toolProgress", value: { progress: 1, total: 2, message: "half" } },
      },
      { eventId: "sevt_8", message: start },
    ];
    played.events = [userMessage(1n, "now")];
    const stream = await openStream(mesh.rest, KEY, "?event_deltas[]=agent.message");
    assert.deepEqual(await readUntil(stream, "user.message"), ["event_start", "user.message"]);
  });

  it("refuses a stream of an unknown session or unknown deltas before it begins", async () => {
    assert.equal((await call("/v1/sessions/sesn_2/events/stream")).status, 404);
    assert.equal((await call("/v1/sessions/sesn_1/events/stream?event_deltas[]=agent.dreams")).status, 400);
  });

  it("ends streams and leaves in time when it is told to stop [B132]", async () => {
    const stream = await openStream(mesh.rest, KEY);
    const ended = once(stream.resume(), "end");
    const begun = Date.now();
    mesh.gateway.process.kill("SIGTERM");
    await ended;
    assert.equal(await mesh.gateway.exit, 0);
    assert.ok(Date.now() - begun < 5000);
  });
});
