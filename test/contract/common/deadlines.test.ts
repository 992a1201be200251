import assert from "node:assert/strict";
import { GanglionError } from "../../../services/common/errors/ganglion-error.ts";
import type { CallContext } from "../../../services/common/grpc/call-context.ts";
import { serverStream, unary } from "../../../services/common/grpc/handlers.ts";
import { parseTraceparent } from "../../../services/common/telemetry/trace-context.ts";
import { Fixture, WATCH, watchMessage } from "./fixture.ts";

const REQUEST = { sessionId: "sesn_1" };

describe("deadlines and cancellation", () => {
  let fixture: Fixture;
  before(async () => {
    fixture = await Fixture.create();
  });
  after(() => fixture.stop());

  /** An outer service that calls an inner one on behalf of its caller. */
  const chain = async () => {
    const inner = { ctx: Promise.withResolvers<CallContext>(), ended: Promise.withResolvers<void>() };
    const innerServer = await fixture.serve({
      getSession: unary(async (_request, ctx) => {
        inner.ctx.resolve(ctx);
        await new Promise((resolve) => ctx.signal.addEventListener("abort", resolve));
        inner.ended.resolve();
        throw ctx.signal.reason;
      }),
    });
    const toInner = await fixture.client(innerServer.address, "harness");
    const outer = Promise.withResolvers<CallContext>();
    const outerServer = await fixture.serve({
      getSession: unary(async (request, ctx) => {
        outer.resolve(ctx);
        return toInner.getSession(request, { parent: ctx, timeoutMs: 60_000 });
      }),
    });
    return { client: await fixture.client(outerServer.address), inner, outer };
  };

  it("[B134] the shorter deadline wins downstream", async () => {
    const { client, inner } = await chain();
    const startedAt = Date.now();
    await assert.rejects(client.getSession(REQUEST, { timeoutMs: 400 }), { code: "DEADLINE_EXCEEDED" });
    const ctx = await inner.ctx.promise;
    assert.ok(ctx.deadlineMs <= startedAt + 500, "the inner call inherits the outer deadline");
    await inner.ended.promise;
    assert.ok(Date.now() - startedAt < 2000);
  });

  it("[B134] a child is cancelled when its parent is", async () => {
    const { client, inner } = await chain();
    const abort = new AbortController();
    const call = client.getSession(REQUEST, { signal: abort.signal });
    await inner.ctx.promise;
    abort.abort();
    await assert.rejects(call, { code: "CANCELLED" });
    await inner.ended.promise;
  });

  it("a call that was given no deadline gets the server's", async () => {
    const server = await fixture.serve(
      { getSession: unary(() => new Promise<never>(() => {})) },
      { defaultDeadlineMs: 100 },
    );
    const client = await fixture.client(server.address);
    const error = await client
      .getSession(REQUEST, { timeoutMs: Number.POSITIVE_INFINITY })
      .catch((e: unknown) => e);
    assert.ok(GanglionError.is(error));
    assert.equal(error.code, "DEADLINE_EXCEEDED");
    assert.equal(error.domain, "ganglion.session");
  });

  it("a call on behalf of one that is over is not made", async () => {
    let calls = 0;
    const server = await fixture.serve({
      getSession: unary(async () => {
        calls += 1;
        return { session: undefined };
      }),
    });
    const client = await fixture.client(server.address);
    const over = { signal: AbortSignal.abort(), deadlineMs: Number.POSITIVE_INFINITY, traceparent: "" };
    await assert.rejects(client.getSession(REQUEST, { parent: over }), { code: "CANCELLED" });
    const late = { ...over, signal: new AbortController().signal, deadlineMs: Date.now() - 1 };
    await assert.rejects(client.getSession(REQUEST, { parent: late }), { code: "DEADLINE_EXCEEDED" });
    assert.equal(calls, 0);
  });

  it("a stream has no deadline of its own and ends with the signal of its caller", async () => {
    const server = await fixture.serve(
      {
        watchEvents: serverStream(async function* (_request, ctx) {
          assert.equal(ctx.deadlineMs, Number.POSITIVE_INFINITY);
          yield watchMessage(1);
          await new Promise((resolve) => ctx.signal.addEventListener("abort", resolve));
        }),
      },
      { defaultDeadlineMs: 50 },
    );
    const client = await fixture.client(server.address);
    const abort = new AbortController();
    const tail = client.watchEvents(WATCH, { signal: abort.signal });
    await tail.next();
    const next = tail.next();
    setTimeout(() => abort.abort(), 150);
    await assert.rejects(next, { code: "CANCELLED" });
  });

  it("trace context crosses every hop, with export off", async () => {
    const { client, inner, outer } = await chain();
    const traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    const parent = { signal: new AbortController().signal, deadlineMs: Date.now() + 300, traceparent };
    await assert.rejects(client.getSession(REQUEST, { parent }));
    for (const ctx of [await outer.promise, await inner.ctx.promise]) {
      assert.equal(ctx.traceId, "0af7651916cd43dd8448eb211c80319c");
      assert.equal(parseTraceparent(ctx.traceparent)?.traceId, ctx.traceId);
    }
  });

  it("a server that cannot be reached is named, without its address", async () => {
    const client = await fixture.client("127.0.0.1:1");
    await assert.rejects(client.getSession(REQUEST), (error: GanglionError) => {
      assert.equal(error.code, "UNAVAILABLE");
      assert.equal(error.reason, "UNREACHABLE");
      assert.equal(error.domain, "ganglion.session");
      assert.equal(error.message, "session cannot be reached");
      return true;
    });
  });
});
