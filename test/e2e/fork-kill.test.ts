import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { connectMesh, type Mesh } from "../../services/cli/client/connect-mesh.ts";
import { createClient } from "../../services/common/grpc/create-client.ts";
import { SandboxServiceService } from "../../services/gen/ganglion/sandbox/v1/sandbox_service.ts";
import {
  CreateSessionRequest,
  type Session,
  SessionStatus,
  WatchEventsRequest,
} from "../../services/gen/ganglion/session/v1/session_service.ts";
import { Event } from "../../services/gen/ganglion/types/v1/event.ts";
import { TestMesh } from "../kit/mesh.ts";

const READY = 1;
const PRICE = {
  ...{ input_microcents: 1_000_000, output_microcents: 1_000_000, cache_read_microcents: 1_000_000 },
  ...{ cache_write_5m_microcents: 1_000_000, cache_write_1h_microcents: 1_000_000 },
};

describe("forks, kills and budgets in a whole mesh", function () {
  this.timeout(60_000);
  let mesh: TestMesh;
  let client: Mesh;
  let folder: string;

  before(async function () {
    this.timeout(120_000);
    folder = mkdtempSync(join(tmpdir(), "ganglion-fork-"));
    const prices = join(folder, "prices.json");
    writeFileSync(prices, JSON.stringify({ models: { "claude*": PRICE } }));
    mesh = await TestMesh.start({ args: ["--model-prices", prices] });
    client = connectMesh(mesh.files.state);
  });
  after(async () => {
    client?.close();
    await mesh?.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  const sessionOf = (stdout: string) => /session (sesn_\w+)/.exec(stdout)?.[1] as string;
  const json = (stdout: string) => JSON.parse(stdout.trim().split("\n")[0] ?? "") as Record<string, string>;
  const get = async (sessionId: string): Promise<Session> => {
    const { session } = await client.sessions.getSession({ sessionId });
    assert.ok(session);
    return session;
  };
  /** Resolves with the first event after a position that is wanted. */
  const until = async (sessionId: string, wanted: (event: Event) => boolean, afterPosition = 0n) => {
    const request = WatchEventsRequest.fromPartial({ sessionId, afterPosition });
    for await (const { message } of client.sessions.watchEvents(request, {
      signal: AbortSignal.timeout(30_000),
    })) {
      if (message?.$case === "event" && wanted(message.value)) return message.value;
    }
    throw new Error("the stream ended");
  };
  const say = (text: string) => {
    const value = Buffer.from(JSON.stringify({ type: "text", text }));
    const block = { type: "text", data: { $case: "json" as const, value } };
    return Event.fromPartial({ body: { $case: "userMessage", value: { content: [block] } } });
  };
  const create = async (model: Session, more: Partial<CreateSessionRequest>) => {
    const { agentId, environmentId } = model;
    const request = CreateSessionRequest.fromPartial({ agentId, environmentId, ...more });
    const { session } = await client.sessions.createSession(request);
    assert.ok(session);
    return session;
  };

  it("a fork goes on from the middle of a log, in a hand of its own", async () => {
    const made = await mesh.cli(["run", "Run: echo one > f; cat f"]);
    assert.equal(made.code, 0, made.stderr);
    const source = sessionOf(made.stdout);
    const fork = await mesh.cli(["sessions", "fork", source, "--title", "branch", "--json"]);
    assert.equal(fork.code, 0, fork.stderr);
    const { id, title, forkedFromSessionId } = json(fork.stdout);
    assert.deepEqual([title, forkedFromSessionId], ["branch", source]);
    const more = await mesh.cli(["run", "Run: cat f || echo none", "--session", id as string]);
    assert.equal(more.code, 0, more.stderr);
    assert.match(more.stdout, /none/);
    const { headPosition } = await get(source);
    const early = await mesh.cli(["sessions", "fork", source, "--at", "2", "--json"]);
    const { id: second } = json(early.stdout);
    // Cut before the answer: the fork asks the model itself.
    await until(second as string, ({ type }) => type === "session.status_idle");
    assert.equal((await get(source)).headPosition, headPosition);
    assert.equal((await mesh.cli(["sessions", "fork", source, "--at", "999999"])).code === 0, false);
  });

  it("a kill ends what runs: session, stream and the hand with its processes", async () => {
    const model = await get(sessionOf((await mesh.cli(["run", "hello"])).stdout));
    const { id } = await create(model, { initialEvents: [say("Run: sleep 600")] });
    await until(id, ({ type }) => type === "ganglion.hand_provisioned");
    const tls = mesh.tls("operator");
    const sandbox = createClient(SandboxServiceService, mesh.address("sandbox-1"), tls, "sandbox", {
      image: null,
    });
    const isAlive = async () =>
      (await sandbox.listHands({ sessionId: id })).hands.some(({ state }) => state === READY);
    try {
      assert.equal(await isAlive(), true);
      const ended = until(id, ({ type }) => type === "session.status_terminated");
      const { code, stdout } = await mesh.cli(["sessions", "kill", id]);
      assert.equal(code, 0, stdout);
      const { position } = await ended;
      assert.equal((await get(id)).status, SessionStatus.SESSION_STATUS_TERMINATED);
      // A hand's end is told to nobody.
      for (const deadline = Date.now() + 10_000; await isAlive(); await pause(100)) {
        assert.ok(Date.now() < deadline, "the hand still lives");
      }
      // By now everybody knows of the end who had something left to do.
      assert.equal((await get(id)).headPosition, position, "nothing follows the end");
    } finally {
      sandbox.close();
    }
  });

  it("a budget pauses the session between two requests, and raising it lets the turn go on", async () => {
    const model = await get(sessionOf((await mesh.cli(["run", "hello"])).stdout));
    const budget = { maxListCostCents: 1n };
    const { id } = await create(model, { budget, initialEvents: [say("Run: echo paid")] });
    const stop = (event: Event) =>
      event.body?.$case === "sessionStatusIdle" ? event.body.value.stopReason?.type : 0;
    const paused = await until(id, (event) => stop(event) !== 0);
    assert.equal(stop(paused), 4);
    const session = await get(id);
    assert.ok((session.listCostMicrocents ?? 0n) >= 1_000_000n);
    await client.sessions.updateSession({
      ...{ sessionId: id, title: undefined, metadataSet: {}, metadataRemove: [], budget: undefined },
      removeBudget: true,
    });
    const done = await until(id, (event) => stop(event) !== 0, paused.position);
    assert.equal(stop(done), 1);
  });
});
