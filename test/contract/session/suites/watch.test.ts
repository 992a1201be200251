import assert from "node:assert/strict";
import {
  type Preview,
  type PublishPreviewsRequest,
  WatchEventsRequest,
  type WatchEventsResponse,
} from "../../../../services/gen/ganglion/session/v1/session_service.ts";
import type { RunningService } from "../../../kit/start-service.ts";
import { until } from "../../../kit/until.ts";
import { Outbox } from "../outbox.ts";
import {
  type Caller,
  emit,
  event,
  refused,
  refusedField,
  type SessionKit,
  same,
  userMessage,
} from "../session-kit.ts";
import { Suite } from "../suite.ts";

/** Streams of a log. */
export function watchSuite(kit: () => SessionKit): void {
  describe("watching", () => {
    const suite = new Suite(kit, "watch");

    const watch = (caller: Caller, sessionId: string, more: Partial<WatchEventsRequest> = {}) =>
      caller.session.watchEvents(WatchEventsRequest.fromPartial({ sessionId, ...more }));
    type Stream = ReturnType<typeof watch>;
    const next = async (stream: Stream): Promise<WatchEventsResponse> => {
      const { value } = await stream.next();
      assert.ok(value, "the stream goes on");
      return value;
    };
    const nextEvents = async (stream: Stream, count: number) => {
      const seen: { position: bigint; type: string; id: string }[] = [];
      while (seen.length < count) {
        const { message, position } = await next(stream);
        if (message?.$case === "event")
          seen.push({ position, type: message.value.type, id: message.value.id });
      }
      return seen;
    };

    /** Says something on the channel of hints, as another replica would. */
    const say = (what: string) =>
      kit().sql("ganglion_owner", `SELECT pg_notify('ganglion_session', '${what}')`);

    it("begins with a checkpoint at once, then sends stored and then live events", async () => {
      const { id } = await suite.create();
      await emit(suite.client, id, [userMessage("stored")]);
      const stream = watch(suite.client, id);
      const first = await next(stream);
      same([first.message?.$case, first.position], ["checkpoint", 0n]);
      same(
        (await nextEvents(stream, 2)).map(({ position }) => position),
        [1n, 2n],
      );
      await emit(suite.client, id, [userMessage("live")]);
      same(
        (await nextEvents(stream, 1)).map(({ position }) => position),
        [3n],
      );
      await stream.return();
    });

    it("every message carries the position to resume from [B045]", async () => {
      const { id } = await suite.create();
      await emit(suite.client, id, [userMessage("a"), userMessage("b"), userMessage("c")]);
      const stream = watch(suite.client, id);
      await next(stream);
      const second = (await nextEvents(stream, 2))[1];
      await stream.return();
      const resumed = watch(suite.client, id, { afterPosition: second?.position ?? 0n });
      same(
        (await nextEvents(resumed, 2)).map(({ position }) => position),
        [3n, 4n],
      );
      await resumed.return();
    });

    it("with from_head whatever is appended after the first message is sent", async () => {
      const { id } = await suite.create();
      await emit(suite.client, id, [userMessage("old")]);
      const stream = watch(suite.client, id, { fromHead: true });
      assert.equal((await next(stream)).position, 2n);
      await emit(suite.client, id, [userMessage("new")]);
      same(
        (await nextEvents(stream, 1)).map(({ position }) => position),
        [3n],
      );
      await stream.return();
    });

    it("misses and repeats nothing across reconnects while others append [B043, B038, B046]", async () => {
      const { id } = await suite.create();
      const total = 120;
      const writers = Array.from({ length: 4 }, async (_, writer) => {
        for (let n = 0; n < total / 4; n++)
          await emit(suite.client, id, [userMessage("x", `sevt_${writer}_${n}`)]);
      });
      const seen: bigint[] = [];
      while (seen.length < total + 1) {
        const stream = watch(suite.client, id, { afterPosition: seen.at(-1) ?? 0n });
        const want = Math.min(1 + (seen.length % 23), total + 1 - seen.length);
        seen.push(...(await nextEvents(stream, want)).map(({ position }) => position));
        await stream.return();
      }
      await Promise.all(writers);
      same(
        seen,
        Array.from({ length: total + 1 }, (_, index) => BigInt(index + 1)),
      );
    });

    it("a large event reaches watchers: the hint carries an id and nothing of it [B048, M27]", async () => {
      const { id } = await suite.create();
      const stream = watch(suite.client, id, { fromHead: true });
      await next(stream);
      const listener = await kit().listen("ganglion_session");
      let isHeard = false;
      const heard = listener
        .next((text) => text.includes(id))
        .then(() => {
          isHeard = true;
        });
      // Hints are sent while another replica says that it is here.
      await until(async () => {
        await say("!");
        await emit(suite.client, id, [userMessage("small")]);
        return isHeard;
      }, "a hint for one who listens");
      await heard;
      await emit(suite.client, id, [userMessage("é".repeat(500_000), "sevt_large")]);
      for (;;) if ((await nextEvents(stream, 1))[0]?.id === "sevt_large") break;
      await say("-sesn_marker");
      await listener.next((text) => text.includes("marker"));
      for (const payload of listener.heard) assert.match(payload, /^([+~-]sesn_[0-9a-z]+\n?|[!*]\n?)+$/);
      await listener.close();
      await stream.return();
    });

    it("many watchers of one session see the same, whenever they came", async () => {
      const { id } = await suite.create();
      const streams: Stream[] = [];
      const sending = (async () => {
        for (let n = 0; n < 40; n++) await emit(suite.client, id, [userMessage(String(n))]);
      })();
      for (let n = 0; n < 8; n++) streams.push(watch(suite.client, id));
      const seen = await Promise.all(streams.map((stream) => nextEvents(stream, 41)));
      await sending;
      for (const one of seen) same(one, seen[0]);
      same(
        seen[0]?.map(({ position }) => Number(position)),
        Array.from({ length: 41 }, (_, n) => n + 1),
      );
      await Promise.all(streams.map((stream) => stream.return()));
    });

    it("sends only the types asked for", async () => {
      const { id } = await suite.create();
      const stream = watch(suite.client, id, { types: ["user.interrupt"] });
      await next(stream);
      await emit(suite.client, id, [
        userMessage("x"),
        event({ $case: "userInterrupt", value: { sessionThreadId: "" } }),
      ]);
      same(
        (await nextEvents(stream, 1)).map(({ type, position }) => [type, position]),
        [["user.interrupt", 3n]],
      );
      await stream.return();
    });

    it("an archived session's stream ends after its last event, also for those who come later", async () => {
      const { id } = await suite.create();
      const live = watch(suite.client, id);
      await nextEvents(live, 1);
      await suite.client.session.archiveSession({ sessionId: id });
      same(
        (await nextEvents(live, 1)).map(({ type }) => type),
        ["session.status_terminated"],
      );
      assert.equal((await live.next()).done, true);
      const late = watch(suite.client, id);
      await nextEvents(late, 2);
      assert.equal((await late.next()).done, true);
    });

    it("a deleted session's stream ends with session.deleted", async () => {
      const { id } = await suite.create();
      const stream = watch(suite.client, id, { types: ["user.message"] });
      await next(stream);
      // Once a live event came the watcher stands at the live end.
      await emit(suite.client, id, [userMessage("x")]);
      await nextEvents(stream, 1);
      await suite.client.session.deleteSession({ sessionId: id });
      same(
        (await nextEvents(stream, 1)).map(({ type, position }) => [type, position]),
        [["session.deleted", 2n]],
      );
      assert.equal((await stream.next()).done, true);
    });

    it("refuses who is ahead of the log and who asks for two beginnings", async () => {
      const { id } = await suite.create();
      await assert.rejects(
        watch(suite.client, id, { afterPosition: 2n }).next(),
        refused("OUT_OF_RANGE", "POSITION_AHEAD_OF_LOG"),
      );
      await assert.rejects(
        watch(suite.client, id, { afterPosition: 1n, fromHead: true }).next(),
        refusedField("after_position"),
      );
      await assert.rejects(
        watch(suite.client, "sesn_none").next(),
        refused("NOT_FOUND", "SESSION_NOT_FOUND"),
      );
    });

    it("passes previews to those who asked, before their event, and stores none", async () => {
      const { id } = await suite.create();
      const { epoch } = await suite.acquire(id);
      const withPreviews = watch(suite.client, id, { includePreviews: true, fromHead: true });
      const without = watch(suite.client, id, { fromHead: true });
      await Promise.all([next(withPreviews), next(without)]);
      // A live event says that both have reached the live end.
      await emit(suite.client, id, [userMessage("go")]);
      await Promise.all([nextEvents(withPreviews, 1), nextEvents(without, 1)]);

      const outbox = new Outbox();
      const published = suite.harness.session.publishPreviews(outbox.stream());
      const send = (message: Preview["message"], eventId = "sevt_answer") =>
        outbox.send({ sessionId: id, epoch, preview: { eventId, message } });
      send({ $case: "text", value: { text: "without a start" } }, "sevt_unopened");
      send({ $case: "start", value: { eventType: "agent.message" } });
      send({ $case: "text", value: { text: "Hel" } });
      send({ $case: "text", value: { text: "lo" } });
      const previews: string[] = [];
      while (previews.length < 3) {
        const { message, position } = await next(withPreviews);
        assert.equal(message?.$case, "preview");
        assert.equal(position, 3n);
        const inner = message.value.message;
        previews.push(inner?.$case === "text" ? inner.value.text : (inner?.$case ?? ""));
      }
      same(previews, ["start", "Hel", "lo"]);
      const block = {
        type: "text",
        data: { $case: "json" as const, value: Buffer.from('{"type":"text","text":"Hello"}') },
      };
      const answer = event(
        { $case: "agentMessage", value: { block, modelRequestStartId: "sevt_start", blockIndex: 0 } },
        "sevt_answer",
      );
      await emit(suite.harness, id, [answer], { epoch });
      same(
        (await nextEvents(withPreviews, 1)).map(({ id: eventId }) => eventId),
        ["sevt_answer"],
      );
      same(
        (await nextEvents(without, 1)).map(({ id: eventId }) => eventId),
        ["sevt_answer"],
      );
      outbox.end();
      await published;
      await Promise.all([withPreviews.return(), without.return()]);
    });

    it("refuses previews of a brain that does not hold the lease", async () => {
      const { id } = await suite.create();
      const { epoch } = await suite.acquire(id);
      const message = { $case: "discarded" as const, value: {} };
      const publish = (request: Partial<PublishPreviewsRequest>) =>
        suite.harness.session.publishPreviews([
          { sessionId: id, epoch, preview: { eventId: "sevt_x", message }, ...request },
        ]);
      await publish({});
      await assert.rejects(publish({ epoch: epoch + 1n }), refused("FAILED_PRECONDITION", "STALE_EPOCH"));
      await assert.rejects(publish({ preview: undefined }), refusedField("preview"));
      await assert.rejects(publish({ epoch: 0n }), refusedField("epoch"));
    });

    it("a quiet stream still says something, for events and for work [B138]", async () => {
      const quiet = await kit().startReplica({ GANGLION_WATCH_QUIET_MS: "200" });
      try {
        const { id } = await suite.create();
        const reader = await kit().asClient("wrkspc_default", quiet.listening.addr);
        const stream = watch(reader, id, { types: ["agent.message"] });
        const first = await next(stream);
        // Nothing that was asked for happens, and the position moves all the same.
        await emit(suite.client, id, [userMessage("x")]);
        const kinds = new Set<string | undefined>([first.message?.$case]);
        let position = 0n;
        while (position < 2n) {
          const checkpoint = await next(stream);
          kinds.add(checkpoint.message?.$case);
          position = checkpoint.position;
        }
        same([...kinds], ["checkpoint"]);
        const worker = await kit().as("harness", "harness-quiet", quiet.listening.addr);
        const hints = worker.session.watchRunnable({});
        for (let n = 0; n < 3; n++) assert.equal((await hints.next()).done, false);
        await Promise.all([stream.return(), hints.return()]);
      } finally {
        await quiet.stop();
      }
    });

    describe("across replicas", () => {
      let replica: RunningService;
      before(async () => {
        replica = await kit().startReplica();
      });
      after(() => replica.stop());

      it("an append through one replica is seen through the other at once", async () => {
        const { id } = await suite.create();
        const other = await kit().asClient("wrkspc_default", replica.listening.addr);
        const stream = watch(other, id, { fromHead: true });
        await next(stream);
        await emit(suite.client, id, [userMessage("first")]);
        await nextEvents(stream, 1);
        const started = performance.now();
        await emit(suite.client, id, [userMessage("across")]);
        same(
          (await nextEvents(stream, 1)).map(({ position }) => position),
          [3n],
        );
        // Well below the slow look of 5 s: it was the hint.
        assert.ok(performance.now() - started < 2_500);
        await stream.return();
      });

      it("a replica that is alone tells nobody of its appends, and tells one that comes", async () => {
        await replica.stop();
        const { id } = await suite.create();
        const listener = await kit().listen("ganglion_session");
        try {
          const isTold = async () => {
            const before = listener.heard.length;
            const { stored } = await emit(suite.client, id, [userMessage("alone")]);
            assert.equal(stored.length, 1);
            // What was said before this comes before it. No replica would say it.
            await say(`nobody ${before}`);
            await listener.next((text) => text === `nobody ${before}`);
            return listener.heard.slice(before).some((text) => text.includes(id));
          };
          await until(async () => !(await isTold()), "a replica that finds out that it is alone");
          // One of an older version says that something happened, and never that it is here.
          await say("-sesn_other");
          await until(isTold, "a replica that heard of another by its hint");
          await until(async () => !(await isTold()), "a replica that is alone again");
          replica = await kit().startReplica();
          await until(isTold, "a replica that heard of another");
        } finally {
          await listener.close();
        }
      }).timeout(60_000);

      it("draining ends a watch with UNAVAILABLE and where to resume", async () => {
        const { id } = await suite.create();
        const other = await kit().asClient("wrkspc_default", replica.listening.addr);
        const stream = watch(other, id);
        await nextEvents(stream, 1);
        replica.process.kill("SIGTERM");
        await assert.rejects(stream.next(), (error: Error & { metadata?: Record<string, string> }) => {
          assert.equal(error.metadata?.position, "1");
          return refused("UNAVAILABLE", "DRAINING")(error);
        });
        assert.equal(await replica.exit, 0);
      });
    });
  });
}
