import assert from "node:assert/strict";
import { GanglionError } from "../../../services/common/errors/ganglion-error.ts";
import { clientStream, serverStream, unary } from "../../../services/common/grpc/handlers.ts";
import { EmitEventsRequest } from "../../../services/gen/ganglion/session/v1/session_service.ts";
import { Fixture, WATCH, watchMessage } from "./fixture.ts";

describe("a handler", () => {
  let fixture: Fixture;
  before(async () => {
    fixture = await Fixture.create();
  });
  after(() => fixture.stop());

  const failing = async (fail: () => Promise<never>) => {
    const server = await fixture.serve({ getSession: unary(fail) });
    const client = await fixture.client(server.address);
    const startedAt = performance.now();
    const error = await client.getSession({ sessionId: "sesn_1" }, { timeoutMs: 5000 }).then(
      () => assert.fail("the call succeeded"),
      (reason: unknown) => reason as GanglionError,
    );
    return { error, ms: performance.now() - startedAt, server, client };
  };

  it("[M02, A104] that rejects answers INTERNAL at once and the process lives", async () => {
    const { error, ms, client } = await failing(async () => {
      await Promise.resolve();
      throw new Error("planted-cause-text");
    });
    assert.equal(error.code, "INTERNAL");
    assert.equal(error.message, "internal error");
    assert.ok(ms < 1000, `took ${ms} ms`);
    assert.match(error.metadata.trace_id ?? "", /^[0-9a-f]{32}$/);
    assert.ok(!JSON.stringify({ ...error, message: error.message }).includes("planted-cause-text"));
    const line = fixture.calls("GetSession").at(-1);
    assert.equal(line?.trace_id, error.metadata.trace_id);
    assert.match(JSON.stringify(line), /planted-cause-text/);
    await assert.rejects(client.getSession({ sessionId: "sesn_1" }), { code: "INTERNAL" });
  });

  it("[M03] that throws synchronously answers INTERNAL with a trace id", async () => {
    const { error } = await failing((() => {
      throw new TypeError("planted-cause-text");
    }) as () => Promise<never>);
    assert.equal(error.code, "INTERNAL");
    assert.match(error.metadata.trace_id ?? "", /^[0-9a-f]{32}$/);
  });

  it("[B142] of a stream that throws after its first message ends the stream with INTERNAL", async () => {
    const server = await fixture.serve({
      watchEvents: serverStream(async function* () {
        yield watchMessage(1);
        throw new Error("planted-cause-text");
      }),
    });
    const client = await fixture.client(server.address);
    const seen: bigint[] = [];
    await assert.rejects(
      async () => {
        for await (const message of client.watchEvents(WATCH)) seen.push(message.position);
      },
      { code: "INTERNAL", message: "internal error" },
    );
    assert.deepEqual(seen, [1n]);
  });

  it("[B142] that answers something that cannot be encoded gives INTERNAL", async () => {
    const server = await fixture.serve({ getSession: unary(async () => ({ session: 7 }) as never) });
    const client = await fixture.client(server.address);
    const wrong = await fixture.serve({ getSession: unary(async () => null as never) });
    const other = await fixture.client(wrong.address);
    for (const call of [client, other]) {
      await assert.rejects(call.getSession({ sessionId: "sesn_1" }), {
        code: "INTERNAL",
        message: "internal error",
      });
    }
  });

  it("sends its own error with reason, metadata, fields and retry advice", async () => {
    const { error } = await failing(async () => {
      throw new GanglionError({
        code: "RESOURCE_EXHAUSTED",
        reason: "TOO_MANY",
        message: "too many\u0000 of \ud800 them",
        metadata: { limit: "3", __proto__x: "data" },
        retryAfterMs: 1500,
        violations: [{ field: "session_id", description: "is one too many" }],
      });
    });
    assert.equal(error.code, "RESOURCE_EXHAUSTED");
    assert.equal(error.reason, "TOO_MANY");
    assert.equal(error.domain, "ganglion.session");
    assert.deepEqual({ ...error.metadata }, { limit: "3", __proto__x: "data" });
    assert.equal(error.retryAfterMs, 1500);
    assert.deepEqual(error.violations, [{ field: "session_id", description: "is one too many" }]);
    assert.equal(error.message, "too many  of \ufffd them");
  });

  it("keeps error details under 4 KB however much is wrong", async () => {
    const { error } = await failing(async () => {
      throw new GanglionError({
        code: "INVALID_ARGUMENT",
        reason: "INVALID_FIELD",
        message: "m".repeat(5000),
        metadata: Object.fromEntries(Array.from({ length: 100 }, (_, i) => [`k${i}`, "v".repeat(1000)])),
        violations: Array.from({ length: 1000 }, (_, i) => ({
          field: `f[${i}]`,
          description: "d".repeat(1000),
        })),
      });
    });
    assert.equal(error.reason, "INVALID_FIELD");
    assert.ok(error.message.length <= 200);
  });

  it("may take a stream, which ends with its caller", async () => {
    let received = 0;
    const server = await fixture.serve({
      publishPreviews: clientStream(async (requests, ctx) => {
        for await (const request of requests) {
          assert.equal(request.sessionId, "sesn_1");
          received += 1;
        }
        assert.equal(ctx.signal.aborted, false);
        return {};
      }),
    });
    const client = await fixture.client(server.address, "harness");
    const preview = {
      eventId: "sevt_1",
      message: { $case: "text" as const, value: { text: "y".repeat(1000) } },
    };
    const requests = Array.from({ length: 500 }, () => ({ sessionId: "sesn_1", epoch: 1n, preview }));
    await client.publishPreviews(requests);
    assert.equal(received, 500);
    const failingSource = async function* () {
      yield requests[0] as (typeof requests)[number];
      throw new Error("source broke");
    };
    await assert.rejects(client.publishPreviews(failingSource()), /source broke/);
  });

  it("[M07] answers that exceed the limit are refused with the limit named", async () => {
    const server = await fixture.serve({
      watchEvents: serverStream(async function* () {
        yield watchMessage(1, 5_000_000);
      }),
    });
    const client = await fixture.client(server.address);
    await assert.rejects(client.watchEvents(WATCH).next(), (error: GanglionError) => {
      assert.equal(error.code, "RESOURCE_EXHAUSTED");
      assert.equal(error.reason, "RESPONSE_TOO_LARGE");
      assert.equal(error.metadata.limit_bytes, "4194304");
      return true;
    });
  });

  it("is given a large request as its caller made it, and a client names only methods that there are", async () => {
    const seen: EmitEventsRequest[] = [];
    const server = await fixture.serve({
      emitEvents: unary(async (request) => {
        seen.push(request);
        return { stored: [], headPosition: 1n };
      }),
    });
    const requests = [1_000_000, 10].map((bytes) =>
      EmitEventsRequest.fromPartial({
        sessionId: "sesn_1",
        events: [{ body: { $case: "open", value: { type: "a.b", data: Buffer.alloc(bytes, "x") } } }],
      }),
    );
    const largeRequests = { emitEvents: EmitEventsRequest };
    const client = await fixture.client(server.address, "operator", "session", { largeRequests });
    for (const request of requests) await client.emitEvents(request);
    assert.deepEqual(seen, requests);
    const wrong = { largeRequests: { emitEvent: EmitEventsRequest } };
    await assert.rejects(fixture.client(server.address, "operator", "session", wrong), /emitEvent/);
  });

  it("is not run for a request that is not of its type, which is INVALID_ARGUMENT", async () => {
    let runs = 0;
    const server = await fixture.serve({
      getSession: unary(async () => {
        runs += 1;
        return { session: undefined };
      }),
    });
    const { Client } = await import("@grpc/grpc-js");
    const { createChannelCredentials } = await import("../../../services/common/tls/channel-credentials.ts");
    const { fromStatus } = await import("../../../services/common/errors/from-status.ts");
    const raw = new Client(
      server.address,
      createChannelCredentials(await fixture.ca.bundle("operator"), "session"),
      { "grpc.ssl_target_name_override": "session.ganglion.local" },
    );
    const garbage = Buffer.from([0x0a, 0xff, 0xff, 0xff, 0xff, 0x0f, 1]);
    const error = await new Promise((resolve) => {
      raw.makeUnaryRequest(
        "/ganglion.session.v1.SessionService/GetSession",
        (bytes: Buffer) => bytes,
        (bytes: Buffer) => bytes,
        garbage,
        resolve,
      );
    });
    raw.close();
    assert.equal(fromStatus(error, "session").code, "INVALID_ARGUMENT");
    assert.equal(fromStatus(error, "session").reason, "MALFORMED_REQUEST");
    assert.equal(runs, 0);
  });
});
