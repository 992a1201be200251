import assert from "node:assert/strict";
import { once } from "node:events";
import { Client, type ClientReadableStream, Metadata } from "@grpc/grpc-js";
import { fromStatus } from "../../../services/common/errors/from-status.ts";
import { serverStream } from "../../../services/common/grpc/handlers.ts";
import type { ServerConfig } from "../../../services/common/grpc/start-server.ts";
import { createChannelCredentials } from "../../../services/common/tls/channel-credentials.ts";
import {
  SessionServiceService,
  type WatchEventsResponse,
} from "../../../services/gen/ganglion/session/v1/session_service.ts";
import { Fixture, WATCH, watchMessage } from "./fixture.ts";

const MESSAGE_BYTES = 64 * 1024;

describe("a stream of answers", () => {
  let fixture: Fixture;
  before(async () => {
    fixture = await Fixture.create();
  });
  after(() => fixture.stop());

  /** A server whose watch sends big messages for ever, and a raw client that reads only when told. */
  const flood = async (more: Partial<ServerConfig> = {}) => {
    const seen = { sent: 0, cleaned: Promise.withResolvers<void>() };
    const server = await fixture.serve(
      {
        watchEvents: serverStream(
          async function* () {
            try {
              for (;;) {
                seen.sent += 1;
                yield watchMessage(seen.sent, MESSAGE_BYTES);
              }
            } finally {
              seen.cleaned.resolve();
            }
          },
          { resume: (last) => ({ position: String(last.position) }) },
        ),
      },
      more,
    );
    const credentials = createChannelCredentials(await fixture.ca.bundle("operator"), "session");
    const raw = new Client(server.address, credentials, {
      "grpc.ssl_target_name_override": "session.ganglion.local",
    });
    const method = SessionServiceService.watchEvents;
    const call: ClientReadableStream<WatchEventsResponse> = raw.makeServerStreamRequest(
      method.path,
      method.requestSerialize,
      method.responseDeserialize,
      WATCH,
      new Metadata(),
    );
    return { seen, server, raw, call };
  };

  it("[M04] waits for its reader", async () => {
    const { seen, raw, call } = await flood();
    call.once("data", () => call.pause());
    await once(call, "data");
    const before = await settled(() => seen.sent);
    assert.ok(before * MESSAGE_BYTES < 16 * 1024 * 1024, `${before} messages were asked for`);
    call.resume();
    await until(() => seen.sent > before * 2);
    call.on("error", () => {});
    call.cancel();
    await seen.cleaned.promise;
    raw.close();
  });

  it("[M05] stops and cleans up when its reader goes away", async () => {
    const { seen, raw, call } = await flood();
    call.on("error", () => {});
    await once(call, "data");
    call.cancel();
    await seen.cleaned.promise;
    const sent = seen.sent;
    assert.equal(await settled(() => seen.sent), sent);
    assert.equal(fixture.calls("WatchEvents").at(-1)?.code, "CANCELLED");
    raw.close();
  });

  it("[B126] whose reader stops is bounded in memory and ended with the position to resume from", async () => {
    const { seen, server, raw, call } = await flood({ slowConsumerMs: 300 });
    const before = process.memoryUsage().rss;
    const positions: bigint[] = [];
    call.on("data", (message: WatchEventsResponse) => {
      positions.push(message.position);
      if (positions.length === 1) call.pause();
    });
    await seen.cleaned.promise;
    assert.ok(process.memoryUsage().rss - before < 64 * 1024 * 1024, "memory of a slow reader is bounded");
    const line = await until(() =>
      fixture.calls("WatchEvents").find((l) => l.reason === "CONSUMER_TOO_SLOW"),
    );
    assert.equal(line.code, "RESOURCE_EXHAUSTED");
    assert.ok(server);
    const failed = once(call, "error");
    call.resume();
    const [error] = await failed;
    const known = fromStatus(error, "session");
    assert.equal(known.reason, "CONSUMER_TOO_SLOW");
    // Everything up to that position was delivered before the error.
    assert.equal(known.metadata.position, String(positions.at(-1)));
    assert.deepEqual(
      positions,
      positions.map((_, i) => BigInt(i + 1)),
    );
    raw.close();
  });

  it("[B127] read in bursts delivers every message in order", async () => {
    const total = 600;
    const server = await fixture.serve({
      watchEvents: serverStream(async function* () {
        for (let i = 1; i <= total; i++) yield watchMessage(i, 8192);
      }),
    });
    const client = await fixture.client(server.address);
    let expected = 1n;
    for await (const message of client.watchEvents(WATCH)) {
      assert.equal(message.position, expected);
      expected += 1n;
      // A burst, then nothing for some turns of the event loop.
      if (expected % 50n === 0n) for (let i = 0; i < 200; i++) await new Promise(setImmediate);
    }
    assert.equal(expected, BigInt(total + 1));
  });

  it("[B130] leaves nothing behind when many readers vanish", async () => {
    let open = 0;
    const server = await fixture.serve({
      watchEvents: serverStream(async function* (_request, ctx) {
        open += 1;
        try {
          yield watchMessage(1);
          await new Promise((resolve) => ctx.signal.addEventListener("abort", resolve));
        } finally {
          open -= 1;
        }
      }),
    });
    const clients = await Promise.all(Array.from({ length: 4 }, () => fixture.client(server.address)));
    const tails = clients.flatMap((client) => Array.from({ length: 50 }, () => client.watchEvents(WATCH)));
    await Promise.all(tails.map((tail) => tail.next()));
    assert.equal(open, 200);
    await Promise.all(tails.map((tail) => tail.return()));
    await until(() => open === 0);
    const active = await server.metrics.serverActive.get();
    assert.deepEqual(
      active.values.map(({ value }) => value),
      [0],
    );
  });
});

/** The value once it no longer changes over many turns of the event loop and some time. */
async function settled(read: () => number): Promise<number> {
  for (let last = -1, still = 0; ; ) {
    const now = read();
    still = now === last ? still + 1 : 0;
    if (still === 20) return now;
    last = now;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

/** The first truthy value. */
async function until<T>(read: () => T | undefined | false): Promise<T> {
  for (;;) {
    const value = read();
    if (value) return value;
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}
