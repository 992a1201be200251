import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { Event } from "../../../services/gen/ganglion/types/v1/event.ts";
import { payloadRefs } from "../../../services/session/domain/events/payload-refs.ts";
import { encodeNewEvent, encodeNewEvents } from "../../../services/session/store/event-codec.ts";

// As events were stored before those of a call were encoded together: a retry of one of then must still be the same.
const BODY =
  "c202360a260a0474657874121e7b2274797065223a2274657874222c2274657874223a2268656c6c6f227d120a736576745f73746172741803";
const DIGEST = "83516f1c343ff47a32ffcb8f03f490bd431733b8e27059f793910ddf8c33b461";

const block = (text: string) => ({
  type: "text",
  data: { $case: "json" as const, value: Buffer.from(JSON.stringify({ type: "text", text })) },
});
const message = (text: string, more: Partial<Event> = {}) =>
  Event.fromPartial({
    id: `sevt_${text.length}`,
    ...more,
    body: {
      $case: "agentMessage",
      value: { block: block(text), modelRequestStartId: "sevt_start", blockIndex: 3 },
    },
  });
const open = (type: string, bytes: number, more: Partial<Event> = {}) =>
  Event.fromPartial({
    ...more,
    body: {
      $case: "open",
      value: { type, contentType: "application/x", data: Buffer.alloc(bytes, type) },
    } as never,
  });

describe("what is stored of an event", () => {
  it("has the bytes and the digest that it had before", () => {
    const { body, digest } = encodeNewEvent(message("hello", { mayIgnore: true }), "agent.message");
    const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString("hex");
    assert.deepEqual([hex(body), hex(digest)], [BODY, DIGEST]);
  });
  it("is the body alone, and of all that was chosen a digest, whatever stands beside it in the call", () => {
    const events = [
      message("short"),
      message("é".repeat(70_000), { traceparent: "00-1-2-00" }),
      open("a.b", 0),
      open("a.b", 200, { mayIgnore: true }),
      message("short", { threadId: "thrd_1" }),
      message("short"),
      open("agent.message", 1 << 20),
    ];
    const types = ["agent.message", "agent.message", "a.b", "a.b", "agent.message", "x", "agent.message"];
    const all = encodeNewEvents(events, types);
    assert.equal(all.length, events.length);
    for (const [index, { body, digest, type, ...rest }] of all.entries()) {
      const event = events[index] as Event;
      const bare = Event.encode({ ...Event.fromPartial({}), body: event.body }).finish();
      assert.equal(Buffer.compare(body, bare), 0);
      const head = `${types[index]}\n${event.threadId}\n${event.mayIgnore}\n`;
      const expected = createHash("sha256").update(head).update(bare).digest();
      assert.equal(Buffer.compare(digest, expected), 0);
      assert.equal(type, types[index]);
      assert.equal(rest.traceparent, event.traceparent);
      if (event.id !== "") assert.equal(rest.id, event.id);
      else assert.match(rest.id, /^sevt_/);
    }
  });
  it("is not touched by what comes after it", () => {
    const [first] = encodeNewEvents([message("first")], ["agent.message"]);
    const before = Buffer.from(first?.body ?? []);
    encodeNewEvents([message("other"), message("another")], ["agent.message", "agent.message"]);
    assert.equal(Buffer.compare(first?.body ?? Buffer.alloc(0), before), 0);
  });
  it("holds nothing of an event before it that could not be encoded", () => {
    const broken = message("broken");
    (broken.body as { value: { blockIndex: unknown } }).value.blockIndex = "three";
    assert.throws(() => encodeNewEvents([message("before"), broken], ["agent.message", "agent.message"]));
    const again = encodeNewEvent(message("hello", { mayIgnore: true }), "agent.message");
    assert.equal(Buffer.from(again.digest).toString("hex"), DIGEST);
  });
});

describe("references to content", () => {
  const ref = (payloadId: string) => ({
    payloadId,
    sizeBytes: 1n,
    sha256: Buffer.alloc(32),
    contentType: "",
  });
  it("are found wherever a body has one, each with its path", () => {
    const payload = { type: "image", data: { $case: "payload" as const, value: ref("payl_1") } };
    const result = Event.fromPartial({
      body: {
        $case: "agentToolResult",
        value: { content: [block("a"), payload], fullOutput: ref("payl_2") },
      } as never,
    });
    const found = payloadRefs("events", [message("none"), Event.fromPartial({}), result]);
    assert.deepEqual(
      found.map(({ path, ref: { payloadId }, block: of }) => [path, payloadId, of?.type]),
      [
        ["events[2].content[1]", "payl_1", "image"],
        ["events[2].fullOutput", "payl_2", undefined],
      ],
    );
  });
});
