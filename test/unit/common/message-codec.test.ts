import assert from "node:assert/strict";
import type { MethodDefinition } from "../../../services/common/grpc/handlers.ts";
import { encodeMessage, safeDecoder, takeRequest } from "../../../services/common/grpc/message-codec.ts";
import {
  EmitEventsRequest,
  SessionServiceService,
} from "../../../services/gen/ganglion/session/v1/session_service.ts";
import { Event } from "../../../services/gen/ganglion/types/v1/event.ts";

const { emitEvents } = SessionServiceService;
const request = (bytes: number) =>
  EmitEventsRequest.fromPartial({
    sessionId: "sesn_1",
    epoch: 7n,
    events: [
      Event.fromPartial({
        id: "sevt_1",
        body: { $case: "open", value: { type: "a.b", data: Buffer.alloc(bytes, "é") } },
      }),
      Event.fromPartial({ id: "sevt_2", body: { $case: "userInterrupt", value: { sessionThreadId: "" } } }),
    ],
  });

describe("a message that may be large", () => {
  it("is encoded to the bytes of the generated serializer, whatever was encoded before it", () => {
    for (const bytes of [0, 1, 127, 128, 20_000, 3 << 20, 5, 20_000]) {
      const encoded = encodeMessage(EmitEventsRequest, request(bytes));
      assert.equal(Buffer.compare(encoded, emitEvents.requestSerialize(request(bytes))), 0);
    }
  });
  it("stays what it was when others are encoded after it", () => {
    const first = encodeMessage(EmitEventsRequest, request(300));
    encodeMessage(EmitEventsRequest, request(400));
    assert.equal(Buffer.compare(first, emitEvents.requestSerialize(request(300))), 0);
  });
  it("holds nothing of one that could not be encoded", () => {
    const broken = request(300);
    (broken as { epoch: unknown }).epoch = 1n << 70n;
    assert.throws(() => encodeMessage(EmitEventsRequest, broken));
    const encoded = encodeMessage(EmitEventsRequest, request(300));
    assert.equal(Buffer.compare(encoded, emitEvents.requestSerialize(request(300))), 0);
  });
});

describe("a request that came", () => {
  const decode = safeDecoder(emitEvents as MethodDefinition<unknown, unknown>);
  it("is handed on once: what the transport keeps is empty then", () => {
    const came = decode(emitEvents.requestSerialize(request(300)));
    assert.deepEqual(takeRequest(came), EmitEventsRequest.decode(emitEvents.requestSerialize(request(300))));
    assert.equal(takeRequest(came), undefined);
  });
  it("is refused when it is none, and when it did not come through the decoder", () => {
    const malformed = { code: "INVALID_ARGUMENT", reason: "MALFORMED_REQUEST" };
    assert.throws(() => takeRequest(decode(Buffer.from([0x0a, 0xff]))), malformed);
    assert.throws(() => takeRequest({ sessionId: "sesn_1" }), malformed);
  });
});
