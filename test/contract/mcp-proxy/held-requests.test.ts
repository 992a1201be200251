import assert from "node:assert/strict";
import pg from "pg";
import { createAnthropicModel } from "../../../services/harness/model/anthropic-model.ts";
import type { Model } from "../../../services/harness/ports/model.ts";
import { HELLO, MODEL, ModelStage } from "./model-stage.ts";
import { briefly } from "./proxy-kit.ts";

const HELLO_JSON = JSON.stringify({ ...HELLO, stream: true });
const LISTENER = { onBlockStart: () => {}, onText: () => {} };

describe("requests that come to the model door before they may be sent", () => {
  let stage: ModelStage;
  let harness: Model;
  let count = 0;

  before(async function () {
    this.timeout(60_000);
    stage = await ModelStage.start();
    const { fetch } = await stage.kit.door();
    harness = createAnthropicModel({ baseUrl: `https://${stage.kit.doorAddress()}`, fetch });
  });
  after(() => stage?.stop());

  /** A request that is at the door but for its end, and whose token the door looks up. */
  const open = async (json = HELLO_JSON) => {
    const { kit } = stage;
    const session = await kit.bound({ models: [MODEL] });
    count += 1;
    const traceId = count.toString(16).padStart(32, "0");
    const request = {
      body: Buffer.from(json),
      token: session.token,
      traceparent: `00-${traceId}-b7ad6b7169203331-01`,
    };
    const held = new pg.Client(kit.postgres.connection("ganglion_owner"));
    await held.connect();
    await held.query("BEGIN; LOCK TABLE proxy.tokens");
    const opened = harness.open?.({ ...request, token: Promise.resolve(request.token) });
    const looking = "SELECT FROM pg_locks WHERE NOT granted AND relation = 'proxy.tokens'::regclass";
    for (let found = 0; found === 0; ) found = (await held.query(looking)).rowCount ?? 0;
    await held.end();
    return { session, request: { ...request, listener: LISTENER, opened }, opened, traceId };
  };
  const asked = async () =>
    (await stage.model.journal.entries()).filter(({ kind }) => kind === "request").length;
  const send = (request: Omit<Parameters<Model["ask"]>[0], "signal">) =>
    harness.ask({ ...request, signal: new AbortController().signal });

  it("are sent with what was looked up meanwhile, and recorded like any other [L6]", async () => {
    const { session, request } = await open();
    assert.deepEqual(await stage.kit.records(session.sessionId), []);
    assert.equal((await send(request)).stopReason, "end_turn");
    const records = await stage.kit.records(session.sessionId);
    assert.deepEqual(briefly(records), ["decision allow", "dispatch", "outcome ok"]);
  });

  it("leave nothing when they are given up: no record, and nothing at the model", async () => {
    const before = await asked();
    const { session, opened, traceId } = await open();
    opened?.cancel();
    const line = await stage.kit.service.line(({ trace_id: id }) => id === traceId);
    assert.deepEqual([line.msg, line.status, line.is_complete], ["model request", 0, false]);
    assert.deepEqual(await stage.kit.records(session.sessionId), []);
    assert.equal(await asked(), before);
    assert.deepEqual(
      stage.kit.service.lines().filter(({ level }) => level === "error"),
      [],
    );
  });

  it("are judged as they are, not as they were foreseen", async () => {
    const good = await open(`${HELLO_JSON} `);
    assert.equal((await send(good.request)).stopReason, "end_turn");
    const before = await asked();
    const bad = await open(`${HELLO_JSON.slice(0, -1)}]`);
    await assert.rejects(send(bad.request));
    const [denial, ...more] = await stage.kit.records(bad.session.sessionId);
    assert.deepEqual([denial?.effect, denial?.reason, more], ["deny", "INVALID_FIELD", []]);
    assert.equal(await asked(), before);
  });

  it("are refused when the session's epoch is over before their end, whatever was looked up [L7]", async () => {
    const before = await asked();
    const { session, request } = await open();
    await stage.kit.raiseFence(session.sessionId, 2n, false);
    await assert.rejects(send(request));
    const [denial, ...more] = await stage.kit.records(session.sessionId);
    assert.deepEqual([denial?.reason, more], ["TOKEN_STALE_EPOCH", []]);
    assert.equal(await asked(), before);
  });
});
