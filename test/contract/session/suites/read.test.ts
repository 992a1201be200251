import assert from "node:assert/strict";
import type { GanglionError } from "../../../../services/common/errors/ganglion-error.ts";
import { GetEventsRequest, SortOrder } from "../../../../services/gen/ganglion/session/v1/session_service.ts";
import { Event } from "../../../../services/gen/ganglion/types/v1/event.ts";
import { emit, event, refused, refusedField, type SessionKit, same, userMessage } from "../session-kit.ts";
import { Suite } from "../suite.ts";

/** Slices of a log. */
export function readSuite(kit: () => SessionKit): void {
  describe("reading", () => {
    const suite = new Suite(kit, "read");
    let sessionId: string;
    before(async () => {
      ({ id: sessionId } = await suite.create());
      await emit(
        suite.client,
        sessionId,
        Array.from({ length: 29 }, (_, n) => userMessage(`m${n}`, `sevt_${n + 2}`)),
      );
      await emit(suite.client, sessionId, [
        event({ $case: "userInterrupt", value: { sessionThreadId: "" } }, "sevt_31"),
      ]);
    });

    const get = (more: Partial<GetEventsRequest>) =>
      suite.client.session.getEvents(GetEventsRequest.fromPartial({ sessionId, ...more }));
    const positions = async (more: Partial<GetEventsRequest>) =>
      (await get(more)).events.map(({ position }) => Number(position));
    const range = (from: number, to: number) =>
      Array.from({ length: to - from + 1 }, (_, index) => from + index);

    it("reads everything, a range, and both directions", async () => {
      same(await positions({}), range(1, 31));
      same(await positions({ afterPosition: 28n }), [29, 30, 31]);
      same(await positions({ afterPosition: 3n, beforePosition: 7n }), [4, 5, 6]);
      same(await positions({ beforePosition: 4n, order: SortOrder.SORT_ORDER_DESC }), [3, 2, 1]);
      same(await positions({ limit: 2, order: SortOrder.SORT_ORDER_DESC }), [31, 30]);
      same(await positions({ afterPosition: 31n }), []);
    });

    it("says whether there is more, for the selection and not for the log", async () => {
      assert.equal((await get({ limit: 31 })).hasMore, false);
      assert.equal((await get({ limit: 30 })).hasMore, true);
      assert.equal((await get({ afterPosition: 3n, beforePosition: 7n, limit: 3 })).hasMore, false);
      assert.equal((await get({ afterPosition: 3n, beforePosition: 8n, limit: 3 })).hasMore, true);
      assert.equal((await get({ types: ["user.interrupt"], limit: 1 })).hasMore, false);
      assert.equal((await get({})).headPosition, 31n);
    });

    it("reads only the types asked for", async () => {
      same(await positions({ types: ["user.interrupt", "ganglion.session_created"] }), [1, 31]);
      same(await positions({ types: ["agent.message"] }), []);
    });

    it("reads what surrounds an event", async () => {
      same(await positions({ aroundEventId: "sevt_15", aroundCount: 2 }), range(13, 17));
      same(await positions({ aroundEventId: "sevt_2", aroundCount: 3 }), range(1, 5));
      same(await positions({ aroundEventId: "sevt_20" }), range(10, 30));
      await assert.rejects(get({ aroundEventId: "sevt_none" }), refused("NOT_FOUND", "EVENT_NOT_FOUND"));
      await assert.rejects(
        get({ sessionId: "sesn_none", aroundEventId: "sevt_none" }),
        refused("NOT_FOUND", "SESSION_NOT_FOUND"),
      );
    });

    it("reads from one event to another, both of them in it", async () => {
      same(await positions({ fromEventId: "sevt_28" }), range(28, 31));
      same(await positions({ toEventId: "sevt_3" }), range(1, 3));
      same(await positions({ fromEventId: "sevt_5", toEventId: "sevt_8" }), range(5, 8));
      same(await positions({ fromEventId: "sevt_5", toEventId: "sevt_5" }), [5]);
      same(await positions({ fromEventId: "sevt_8", toEventId: "sevt_5" }), []);
      same(await positions({ fromEventId: "sevt_5", beforePosition: 8n }), [5, 6, 7]);
      same(await positions({ afterPosition: 4n, toEventId: "sevt_7" }), [5, 6, 7]);
      const descending = { fromEventId: "sevt_5", toEventId: "sevt_8", order: SortOrder.SORT_ORDER_DESC };
      same(await positions(descending), [8, 7, 6, 5]);
      same(await positions({ fromEventId: "sevt_5", types: ["user.interrupt"] }), [31]);
    });

    it("pages of a slice between two events go on from the last one's position, in both directions", async () => {
      const up: number[] = [];
      let next: Partial<GetEventsRequest> = { fromEventId: "sevt_5", toEventId: "sevt_20", limit: 7 };
      for (let hasMore = true; hasMore; ) {
        const page = await get(next);
        up.push(...page.events.map(({ position }) => Number(position)));
        hasMore = page.hasMore;
        next = { afterPosition: BigInt(up.at(-1) ?? 0), toEventId: "sevt_20", maxBytes: 1200 };
      }
      same(up, range(5, 20));
      const down: number[] = [];
      next = { fromEventId: "sevt_5", toEventId: "sevt_20", limit: 7, order: SortOrder.SORT_ORDER_DESC };
      for (let hasMore = true; hasMore; ) {
        const page = await get(next);
        down.push(...page.events.map(({ position }) => Number(position)));
        hasMore = page.hasMore;
        next = {
          fromEventId: "sevt_5",
          beforePosition: BigInt(down.at(-1) ?? 0),
          limit: 7,
          order: SortOrder.SORT_ORDER_DESC,
        };
      }
      same(down, range(5, 20).reverse());
    });

    it("refuses an end that is not in the log, and one that is named twice", async () => {
      for (const wrong of [{ fromEventId: "sevt_none" }, { toEventId: "sevt_none" }]) {
        await assert.rejects(get(wrong), refused("NOT_FOUND", "EVENT_NOT_FOUND"));
        await assert.rejects(
          get({ ...wrong, sessionId: "sesn_none" }),
          refused("NOT_FOUND", "SESSION_NOT_FOUND"),
        );
      }
      for (const [field, wrong] of [
        ["from_event_id", { fromEventId: "sevt_5", afterPosition: 1n }],
        ["from_event_id", { fromEventId: "sevt_5", aroundEventId: "sevt_5" }],
        ["to_event_id", { toEventId: "sevt_5", beforePosition: 9n }],
        ["to_event_id", { toEventId: "sevt_5", aroundEventId: "sevt_5" }],
        ["from_event_id", { fromEventId: "a b" }],
      ] as const) {
        await assert.rejects(get(wrong), refusedField(field));
      }
    });

    it("refuses a reader that is ahead of the log, with the head", async () => {
      await assert.rejects(get({ afterPosition: 32n }), (error: GanglionError) => {
        assert.equal(error.metadata.head_position, "31");
        return refused("OUT_OF_RANGE", "POSITION_AHEAD_OF_LOG")(error);
      });
    });

    it("cuts pages by bytes, never exceeds them but for a single event, and misses nothing [B128, B046]", async () => {
      const { id } = await suite.create();
      const kib = (n: number) => userMessage("x".repeat(n * 1024));
      await emit(suite.client, id, [kib(300), kib(900), kib(10), kib(10)]);
      await emit(suite.client, id, [kib(500), kib(500), kib(500), kib(1)]);
      const seen: bigint[] = [];
      for (;;) {
        const page = await get({ sessionId: id, afterPosition: seen.at(-1) ?? 0n, maxBytes: 512 * 1024 });
        const bytes = page.events.reduce((sum, one) => sum + Event.encode(one).finish().length, 0);
        assert.ok(
          page.events.length === 1 || bytes <= 512 * 1024,
          `${page.events.length} events, ${bytes} bytes`,
        );
        seen.push(...page.events.map(({ position }) => position));
        if (!page.hasMore) break;
        assert.ok(page.events.length > 0);
      }
      same(seen.map(Number), range(1, 9));
      const whole = await get({ sessionId: id });
      assert.ok(whole.events.reduce((sum, one) => sum + Event.encode(one).finish().length, 0) <= 3 << 20);
    });

    it("a page of one byte still holds one event", async () => {
      const page = await get({ maxBytes: 1 });
      same([page.events.length, page.hasMore], [1, true]);
    });
  });
}
