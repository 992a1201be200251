import assert from "node:assert/strict";
import { restoreLargeBlocks, storeLargeBlocks } from "../../../services/gateway/rest/large-blocks.ts";
import type { PutPayloadRequest } from "../../../services/gen/ganglion/session/v1/session_service.ts";
import { Event } from "../../../services/gen/ganglion/types/v1/event.ts";

/** A store of payloads in memory. */
function store() {
  const kept = new Map<string, Buffer>();
  return {
    kept,
    putPayload: async (messages: AsyncIterable<PutPayloadRequest> | Iterable<PutPayloadRequest>) => {
      let id = "";
      const pieces: Buffer[] = [];
      for await (const { message } of messages) {
        if (message?.$case === "header") id = message.value.payloadId;
        else if (message?.$case === "data") {
          assert.ok(message.value.length <= 1 << 20);
          pieces.push(message.value);
        }
      }
      kept.set(id, Buffer.concat(pieces));
      return { isDuplicate: false };
    },
    getPayload: async function* ({ payloadId }: { payloadId: string }) {
      const bytes = kept.get(payloadId) ?? Buffer.alloc(0);
      for (let at = 0; at < bytes.length; at += 1000_000) yield { data: bytes.subarray(at, at + 1000_000) };
    },
  };
}

function said(...blocks: object[]): Event {
  const content = blocks.map((block) => ({
    type: (block as { type: string }).type,
    data: { $case: "json" as const, value: Buffer.from(JSON.stringify(block)) },
  }));
  return Event.fromPartial({ id: "sevt_1", body: { $case: "userMessage", value: { content } } });
}

describe("large blocks over REST", () => {
  const image = {
    type: "image",
    source: { type: "base64", media_type: "image/png", data: "A".repeat(5_000_000) },
  };
  const text = { type: "text", text: "small" };

  it("are stored beside the log and read back as they were sent", async () => {
    const sessions = store();
    const sent = said(text, image);
    const [small] = await storeLargeBlocks(sessions, "sesn_1", [sent], {});
    assert.ok(small && Event.encode(small).finish().length < 2000);
    assert.equal(sessions.kept.size, 1);
    const [back] = await restoreLargeBlocks(sessions, "sesn_1", [small], {});
    assert.deepEqual(Event.encode(back as Event).finish(), Event.encode(sent).finish());
  });

  it("are never given back as anything else than what was sent", async () => {
    const sessions = store();
    const [small] = await storeLargeBlocks(sessions, "sesn_1", [said(image)], {});
    for (const [id, bytes] of sessions.kept)
      sessions.kept.set(id, Buffer.concat([bytes.subarray(1), Buffer.from("x")]));
    await assert.rejects(restoreLargeBlocks(sessions, "sesn_1", [small as Event], {}), {
      reason: "PAYLOAD_MISMATCH",
    });
  });
});
