import assert from "node:assert/strict";
import { GetEventsRequest } from "../../../../services/gen/ganglion/session/v1/session_service.ts";
import type { ContentBlock } from "../../../../services/gen/ganglion/types/v1/content.ts";
import { emit, event, refusedField, type SessionKit, same, userMessage } from "../session-kit.ts";
import { Suite } from "../suite.ts";

/** What is stored comes back byte by byte. */
export function bytesSuite(kit: () => SessionKit): void {
  describe("bytes", () => {
    const suite = new Suite(kit, "bytes");

    const block = (type: string, text: string): ContentBlock => ({
      type,
      data: { $case: "json", value: Buffer.from(text) },
    });
    const roundTrip = async (content: ContentBlock[]) => {
      const { id: sessionId } = await suite.create();
      await emit(suite.client, sessionId, [event({ $case: "userMessage", value: { content } })]);
      const { events } = await suite.client.session.getEvents(
        GetEventsRequest.fromPartial({ sessionId, afterPosition: 1n }),
      );
      const body = events[0]?.body;
      assert.equal(body?.$case, "userMessage");
      return body.value.content;
    };

    it("key order, numbers, escapes, duplicate keys and white space survive [M09, M25, B146, B147]", async () => {
      const content = [
        '{"text":"b first","type":"text","z":1e2,"a":100.0,"n":-0}',
        '{ "type" : "text", "text":"", "k":1, "k":2, "deep":[[null,[{"x":null}]],[]] }',
        '{"type":"text","text":"0 and absent","zero":0,"no":false,"nothing":null,"empty":"","big":12345678901234567890}',
      ].map((text) => block("text", text));
      same(await roundTrip(content), content);
    });

    it("U+0000, lone surrogates and characters of every width survive [A135, M26, B058, B060]", async () => {
      const content = [
        block("text", '{"type":"text","text":"nul \\u0000, half \\ud800, pair \\ud83d\\ude00"}'),
        block("text", JSON.stringify({ type: "text", text: "é漢😀\u0001\u007f".repeat(20_000) })),
      ];
      same(await roundTrip(content), content);
    });

    it("output that is no text survives in a harness's bytes [B061, M11]", async () => {
      const { id: sessionId } = await suite.create();
      const { epoch } = await suite.acquire(sessionId);
      const data = Buffer.from(Array.from({ length: 512 }, (_, index) => index % 256));
      const open = event({
        $case: "open",
        value: { type: "acme.raw", data, contentType: "application/octet-stream" },
      });
      await emit(suite.harness, sessionId, [open], { epoch });
      const { events } = await suite.client.session.getEvents(
        GetEventsRequest.fromPartial({ sessionId, types: ["acme.raw"] }),
      );
      same(events[0]?.body, open.body);
    });

    for (const [what, bytes] of [
      ["no JSON", Buffer.from("text")],
      ["an array", Buffer.from('[{"type":"text"}]')],
      ["of another type than it says", Buffer.from('{"type":"image"}')],
      [
        "not UTF-8",
        Buffer.concat([Buffer.from('{"type":"text","text":"'), Buffer.from([0xff]), Buffer.from('"}')]),
      ],
      ["cut off", Buffer.from('{"type":"text","text":"')],
      ["deeper than any stack", Buffer.from("[".repeat(500_000))],
    ] as const) {
      it(`refuses a block that is ${what}, and the next append works`, async () => {
        const { id: sessionId } = await suite.create();
        const bad = event({
          $case: "userMessage",
          value: { content: [{ type: "text", data: { $case: "json", value: bytes } }] },
        });
        await assert.rejects(
          emit(suite.client, sessionId, [userMessage("ok"), bad]),
          refusedField("events[1].user_message.content[0].json"),
        );
        assert.equal((await emit(suite.client, sessionId, [userMessage("ok")])).headPosition, 2n);
      });
    }

    it("counts beyond 2^53 survive [B144]", async () => {
      const { id: sessionId } = await suite.create();
      await kit().sql("ganglion_owner", "UPDATE session.sessions SET head = $2 WHERE session_id = $1", [
        sessionId,
        "9007199254740993",
      ]);
      const answer = await emit(suite.client, sessionId, [userMessage("far")]);
      assert.equal(answer.headPosition, 9_007_199_254_740_994n);
      const { events } = await suite.client.session.getEvents(
        GetEventsRequest.fromPartial({ sessionId, afterPosition: 9_007_199_254_740_993n }),
      );
      assert.equal(events[0]?.position, 9_007_199_254_740_994n);
    });
  });
}
