import assert from "node:assert/strict";
import Anthropic, { APIError } from "@anthropic-ai/sdk";
import { TestMesh } from "../kit/mesh.ts";

type Event = { id?: string; type: string; [field: string]: unknown };

const MODEL = "claude-opus-5-5";
const TURN_MS = 30_000;

describe("the official SDK, unmodified, against a whole mesh", () => {
  let mesh: TestMesh;
  let client: Anthropic;
  let environmentId: string;

  before(async function () {
    this.timeout(120_000);
    mesh = await TestMesh.start();
    client = new Anthropic({ baseURL: mesh.rest, apiKey: mesh.apiKey, maxRetries: 0, timeout: 20_000 });
    const environment = await client.beta.environments.create({
      name: "quickstart",
      config: { type: "cloud", networking: { type: "unrestricted" } },
    });
    environmentId = environment.id;
  });
  after(async function () {
    this.timeout(60_000);
    await mesh?.stop();
  });

  const newAgent = (name: string) =>
    client.beta.agents.create({
      name,
      model: MODEL,
      system: "You are a test.",
      tools: [
        { type: "agent_toolset_20260401", configs: [{ name: "web_search", enabled: false }] },
        {
          type: "custom",
          name: "get_weather",
          description: "Get the weather",
          input_schema: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
        },
      ],
    });
  const send = (sessionId: string, text: string) =>
    client.beta.sessions.events.send(sessionId, {
      events: [{ type: "user.message", content: [{ type: "text", text }] }],
    });
  const refused = async (call: Promise<unknown>): Promise<APIError> => {
    try {
      await call;
    } catch (error) {
      if (error instanceof APIError) return error;
      throw error;
    }
    throw new Error("the call was not refused");
  };

  /** Reads a stream to the turn's end and answers custom calls. */
  const readTurn = async (sessionId: string, stream: AsyncIterable<unknown>): Promise<Event[]> => {
    const seen: Event[] = [];
    const until = Date.now() + TURN_MS;
    for await (const item of stream) {
      const event = item as Event;
      seen.push(event);
      assert.ok(Date.now() < until, "the turn takes too long");
      if (event.type !== "session.status_idle") continue;
      const reason = event.stop_reason as { type: string; event_ids?: string[] };
      if (reason.type !== "requires_action") break;
      const events = (reason.event_ids ?? []).map((id) => ({
        type: "user.custom_tool_result" as const,
        custom_tool_use_id: id,
        is_error: false,
        content: [{ type: "text" as const, text: "sunny" }],
      }));
      await client.beta.sessions.events.send(sessionId, { events });
    }
    return seen;
  };

  it("versions agents and refuses stale changes for good", async () => {
    const first = await newAgent("versions");
    assert.equal(first.version, 1);
    assert.equal(first.model.id, MODEL);
    const second = await client.beta.agents.update(first.id, { version: 1, description: "changed" });
    assert.equal(second.version, 2);
    assert.equal((await client.beta.agents.update(first.id, { description: "changed" })).version, 2);
    const stale = await refused(client.beta.agents.update(first.id, { version: 1, description: "stale" }));
    assert.equal(stale.status, 409);
    assert.equal(stale.headers?.get("x-should-retry"), "false");
    assert.ok(stale.requestID);
    assert.equal((await client.beta.agents.retrieve(first.id, { version: 1 })).description, null);
    const versions: number[] = [];
    for await (const one of client.beta.agents.versions.list(first.id, { limit: 1 }))
      versions.push(one.version);
    assert.deepEqual(versions.toSorted(), [1, 2]);
  });

  it("names the field that is wrong", async () => {
    const error = await refused(client.beta.agents.create({ model: MODEL } as never));
    assert.equal(error.status, 400);
    assert.match(error.message, /name/);
  });

  it("streams a turn with previews, answers a custom call and ends idle", async () => {
    const agent = await newAgent("turn");
    const session = await client.beta.sessions.create({
      agent: agent.id,
      environment_id: environmentId,
      title: "one",
    });
    assert.equal(session.status, "idle");
    assert.equal(session.agent.version, 1);
    const stream = await client.beta.sessions.events.stream(session.id, {
      event_deltas: ["agent.message", "agent.thinking"],
    });
    await send(session.id, "Say hello, then call get_weather for Paris.");
    const seen = await readTurn(session.id, stream);

    const types = seen.map(({ type }) => type);
    assert.equal(types.at(-1), "session.status_idle");
    for (const type of ["user.message", "session.status_running", "agent.message", "agent.custom_tool_use"]) {
      assert.ok(types.includes(type), `${type} is missing in ${types.join(", ")}`);
    }
    assert.ok(!types.some((type) => type.startsWith("ganglion.")), "our own events stay inside");
    const previews = new Map<string, string>();
    for (const event of seen) {
      if (event.type === "event_start") previews.set((event.event as Event).id as string, "");
      if (event.type !== "event_delta") continue;
      const id = event.event_id as string;
      assert.ok(previews.has(id), "a delta came before its start");
      previews.set(id, previews.get(id) + (event.delta as { content: { text: string } }).content.text);
    }
    assert.ok(previews.size > 0, "nothing was shown while it was generated");
    for (const event of seen.filter(
      ({ type, id }) => type === "agent.message" && previews.has(id as string),
    )) {
      const whole = (event.content as { text: string }[]).map(({ text }) => text).join("");
      assert.ok(whole.startsWith(previews.get(event.id as string) as string));
    }

    const history: Event[] = [];
    for await (const event of client.beta.sessions.events.list(session.id, { limit: 3 }))
      history.push(event as never);
    const ids = history.map(({ id }) => id);
    assert.equal(new Set(ids).size, ids.length, "no event comes twice");
    for (const event of seen)
      if (event.id) assert.ok(ids.includes(event.id), `${event.type} is not in the history`);
    const first = history.find(({ type }) => type === "user.message");
    assert.ok(first?.processed_at, "a message that the model has read says when");
    const filtered: string[] = [];
    for await (const { type } of client.beta.sessions.events.list(session.id, {
      types: ["agent.message", "user.message"],
      order: "desc",
    })) {
      filtered.push(type);
    }
    assert.deepEqual([...new Set(filtered)].toSorted(), ["agent.message", "user.message"]);
    assert.equal(filtered.at(-1), "user.message");
  }).timeout(60_000);

  it("shows a turn to a client that sends before it opens the stream", async () => {
    const agent = await newAgent("send first");
    const session = await client.beta.sessions.create({ agent: agent.id, environment_id: environmentId });
    const watcher = await client.beta.sessions.events.stream(session.id);
    await send(session.id, "hello");
    await readTurn(session.id, watcher);
    // Nobody listens any more when the next message is sent and, very likely, answered.
    await send(session.id, "hello again");
    const seen = await readTurn(session.id, await client.beta.sessions.events.stream(session.id));
    const texts = seen
      .filter(({ type }) => type === "user.message")
      .map(({ content }) => JSON.stringify(content));
    assert.equal(texts.length, 1);
    assert.match(texts[0] as string, /hello again/);
    assert.equal(seen.at(-1)?.type, "session.status_idle");
  }).timeout(60_000);

  it("updates, finds, archives and deletes sessions", async () => {
    const agent = await newAgent("life");
    const session = await client.beta.sessions.create({
      agent: { type: "agent", id: agent.id, version: 1 },
      environment_id: environmentId,
      metadata: { a: "1" },
    });
    const updated = await client.beta.sessions.update(session.id, {
      title: "renamed",
      metadata: { a: null, b: "2" },
    });
    assert.equal(updated.title, "renamed");
    assert.deepEqual({ ...updated.metadata }, { b: "2" });
    const found = await client.beta.sessions.list({
      agent_id: agent.id,
      statuses: ["idle", "running"],
      limit: 5,
    });
    assert.deepEqual(
      found.data.map(({ id }) => id),
      [session.id],
    );
    assert.ok((await client.beta.sessions.archive(session.id)).archived_at);
    assert.equal((await refused(send(session.id, "too late"))).status, 409);
    assert.deepEqual(await client.beta.sessions.delete(session.id), {
      id: session.id,
      type: "session_deleted",
    });
    assert.equal((await refused(client.beta.sessions.retrieve(session.id))).status, 404);
    await client.beta.agents.archive(agent.id);
    const late = await refused(
      client.beta.sessions.create({ agent: agent.id, environment_id: environmentId }),
    );
    assert.equal(late.status, 400);
  });

  it("knows no caller without the key", async () => {
    const stranger = new Anthropic({ baseURL: mesh.rest, apiKey: "gk-wrong", maxRetries: 0 });
    assert.equal((await refused(stranger.beta.agents.list())).status, 401);
  });
});
