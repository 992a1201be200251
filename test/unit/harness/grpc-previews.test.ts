import assert from "node:assert/strict";
import type { PublishPreviewsRequest } from "../../../services/gen/ganglion/session/v1/session_service.ts";
import { createGrpcPreviews } from "../../../services/harness/clients/grpc-previews.ts";
import type { SessionClient } from "../../../services/harness/clients/service-clients.ts";

const LEASE = { sessionId: "sesn_1", workspaceId: "wrkspc_1", epoch: 1n, headPosition: 0n };

/** A session service to which streams are opened, each read only as far as a test reads it. */
function played() {
  const streams: { next: () => Promise<string>; end: () => void }[] = [];
  const publishPreviews = (requests: AsyncGenerator<PublishPreviewsRequest>) => {
    const { promise, resolve } = Promise.withResolvers<object>();
    const next = async () => {
      const { eventId, message } = (await requests.next()).value?.preview ?? {};
      if (message?.$case === "toolProgress") return `${eventId} ${message.value.progress}`;
      return `${eventId} ${message?.$case === "text" ? message.value.text : message?.$case}`;
    };
    streams.push({ next, end: () => resolve({}) });
    return promise;
  };
  const client = { publishPreviews } as unknown as SessionClient;
  return { streams, previews: createGrpcPreviews(client, LEASE) };
}

const at = (progress: number) => ({ progress, total: 0, message: "" });

describe("previews on their way to the session service", () => {
  it("of each call's progress one waits, the newest, however slowly it is taken [B092]", async () => {
    const { streams, previews } = played();
    for (let n = 1; n <= 1000; n++) {
      previews.progress("a", at(n));
      previews.progress("b", at(-n));
    }
    previews.start("c", "agent.message");
    const [stream] = streams;
    assert.equal(streams.length, 1, "opened by the first of them");
    assert.deepEqual([await stream?.next(), await stream?.next()], ["a 1000", "b -1000"]);
    assert.equal(await stream?.next(), "c start");
    const next = stream?.next();
    previews.progress("a", at(1001));
    assert.equal(await next, "a 1001");
    previews.close();
  });

  it("a stream that ended is opened again by progress, and not in the middle of a text [B092]", async () => {
    const { streams, previews } = played();
    previews.start("c", "agent.message");
    streams[0]?.end();
    await new Promise(setImmediate);
    previews.text("c", "middle");
    assert.equal(streams.length, 1);
    previews.progress("a", at(1));
    assert.equal(streams.length, 2);
    assert.equal(await streams[1]?.next(), "a 1");
    previews.close();
  });
});
