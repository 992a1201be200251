import assert from "node:assert/strict";
import { EventEmitter, once } from "node:events";
import {
  type Preview,
  type PreviewToolProgress,
  WatchEventsRequest,
} from "../../../../services/gen/ganglion/session/v1/session_service.ts";
import { AgentMcpToolResult } from "../../../../services/gen/ganglion/types/v1/event.ts";
import type { RunningService } from "../../../kit/start-service.ts";
import { Outbox } from "../outbox.ts";
import { emit, event, refused, type SessionKit, userMessage } from "../session-kit.ts";
import { Suite } from "../suite.ts";

/** Text as it is generated, across replicas. */
export function previewsSuite(kit: () => SessionKit): void {
  describe("previews across replicas", function () {
    // Some start processes of their own.
    this.timeout(90_000);
    const suite = new Suite(kit, "previews");
    let replica: RunningService;
    before(async () => {
      replica = await kit().startReplica();
    });
    after(() => replica.stop());

    const here = () => kit().service.listening.addr;
    const there = () => replica.listening.addr;
    const harnessAt = (address: string) => kit().as("harness", "harness-previews", address);
    const acquire = async (sessionId: string) => (await suite.acquire(sessionId)).epoch;
    const publish = async (sessionId: string, epoch: bigint, address: string) => {
      const outbox = new Outbox();
      const harness = await harnessAt(address);
      const done = harness.session.publishPreviews(outbox.stream(), { timeoutMs: Number.POSITIVE_INFINITY });
      done.catch(() => {});
      const send = (eventId: string, message: Preview["message"]) =>
        outbox.send({ sessionId, epoch, preview: { eventId, message } });
      return {
        done,
        start: (id: string) => send(id, { $case: "start", value: { eventType: "agent.message" } }),
        text: (id: string, text: string) => send(id, { $case: "text", value: { text } }),
        discard: (id: string) => send(id, { $case: "discarded", value: {} }),
        progress: (id: string, value: PreviewToolProgress) => send(id, { $case: "toolProgress", value }),
        end: () => outbox.end(),
      };
    };
    // A watcher at an address that has reached the live end, and what it hears as short words.
    const listen = async (sessionId: string, address: string) => {
      const reader = await kit().asClient("wrkspc_default", address);
      const abort = new AbortController();
      const stream = reader.session.watchEvents(
        WatchEventsRequest.fromPartial({ sessionId, includePreviews: true, fromHead: true }),
        { signal: abort.signal },
      );
      await stream.next();
      const heard: string[] = [];
      const changed = new EventEmitter();
      const reading = (async () => {
        for await (const { message } of stream) {
          if (message?.$case === "event") {
            heard.push(`event ${message.value.id}`);
            changed.emit("more");
          }
          if (message?.$case !== "preview") continue;
          const { eventId, message: inner } = message.value;
          const words =
            inner?.$case === "text"
              ? inner.value.text
              : inner?.$case === "toolProgress"
                ? `${inner.value.progress}/${inner.value.total} ${inner.value.message}`
                : inner?.$case;
          heard.push(`${eventId} ${words}`);
          changed.emit("more");
        }
      })();
      reading.catch(() => {});
      const untilIt = async (holds: (heard: string[]) => boolean) => {
        while (!holds(heard)) await once(changed, "more");
      };
      const until = (wanted: string) => untilIt((words) => words.includes(wanted));
      return { heard, until, untilIt, stop: () => abort.abort() };
    };
    const answer = (id: string) => {
      const data = { $case: "json" as const, value: Buffer.from('{"type":"text","text":"Hello"}') };
      const block = { type: "text", data };
      return event(
        { $case: "agentMessage", value: { block, modelRequestStartId: "sevt_s", blockIndex: 0 } },
        id,
      );
    };

    const mcpCall = (id: string) => {
      const data = { $case: "json" as const, value: Buffer.from('{"type":"tool_use"}') };
      const of = {
        modelRequestStartId: "sevt_s",
        blockIndex: 0,
        providerCallId: "p",
        permission: 1,
      } as const;
      const judged = { policy: "", evaluationReason: "", evaluator: "" };
      const call = { ...of, ...judged, name: "search", inputJson: Buffer.from("{}"), mcpServerName: "notes" };
      return event({ $case: "agentMcpToolUse", value: { ...call, block: { type: "tool_use", data } } }, id);
    };
    const mcpResult = (mcpToolUseId: string, id: string) =>
      event(
        {
          $case: "agentMcpToolResult",
          value: AgentMcpToolResult.fromPartial({ mcpToolUseId, outcome: 1 }),
        },
        id,
      );

    it("text that a harness streams to one replica is heard at another one, from the first block on", async () => {
      const { id } = await suite.create();
      const epoch = await acquire(id);
      const [near, far] = [await listen(id, here()), await listen(id, there())];
      await emit(suite.client, id, [userMessage("go")]);
      const stream = await publish(id, epoch, here());
      stream.start("sevt_a");
      stream.text("sevt_a", "Hel");
      stream.text("sevt_a", "lo");
      await near.until("sevt_a lo");
      // Cut differently, perhaps: the beginning is told at once to who comes late.
      await far.untilIt((heard) => textOf(heard, "sevt_a").includes("Hello"));
      stream.discard("sevt_a");
      await far.until("sevt_a discarded");
      stream.start("sevt_b");
      stream.text("sevt_b", "again");
      await far.until("sevt_b again");
      const text = "SELECT type FROM session.events WHERE session_id = $1 AND type LIKE 'agent%'";
      const rows = await kit().sql("ganglion_owner", text, [id]);
      assert.equal(rows.length, 0);
      near.stop();
      far.stop();
      stream.end();
      await stream.done;
    });

    it("how far a tool is, is heard at every replica while its call is open, and never stored [B092]", async () => {
      const { id } = await suite.create();
      const epoch = await acquire(id);
      const [near, far] = [await listen(id, here()), await listen(id, there())];
      const heardByBoth = (words: string) => Promise.all([near.until(words), far.until(words)]);
      const harness = await harnessAt(there());
      await emit(harness, id, [mcpCall("sevt_call")], { epoch });
      await heardByBoth("event sevt_call");
      const stream = await publish(id, epoch, here());
      stream.progress("sevt_call", { progress: 1, total: 4, message: "one of four" });
      await near.until("sevt_call 1/4 one of four");
      // The other replica may have heard of the stream after that.
      for (let n = 2; !far.heard.some((words) => words.startsWith("sevt_call ")); n++) {
        stream.progress("sevt_call", { progress: n, total: 0, message: "" });
        await near.until(`sevt_call ${n}/0 `);
      }
      await emit(harness, id, [mcpResult("sevt_call", "sevt_result")], { epoch });
      await heardByBoth("event sevt_result");
      stream.progress("sevt_call", { progress: 5, total: 5, message: "late" });
      stream.start("sevt_next");
      await heardByBoth("sevt_next start");
      for (const { heard } of [near, far]) {
        assert.equal(heard.at(-1), "sevt_next start");
        assert.equal(heard.at(-2), "event sevt_result", "nothing after the result");
      }
      const text = "SELECT count(*)::int AS count FROM session.events WHERE session_id = $1 AND epoch = $2";
      const [{ count }] = await kit().sql("ganglion_owner", text, [id, epoch]);
      assert.equal(count, 2, "the call and its result");
      near.stop();
      far.stop();
      stream.end();
      await stream.done;
    });

    it("progress that is no number, or longer than a line, is refused [B092]", async () => {
      const { id } = await suite.create();
      const epoch = await acquire(id);
      for (const wrong of [
        { progress: Number.NaN, total: 0, message: "" },
        { progress: 1, total: Number.POSITIVE_INFINITY, message: "" },
        { progress: 1, total: -1, message: "" },
        { progress: 1, total: 0, message: "x".repeat(513) },
      ]) {
        const stream = await publish(id, epoch, here());
        stream.progress("sevt_call", wrong);
        await assert.rejects(stream.done, refused("INVALID_ARGUMENT", "INVALID_FIELD"));
      }
    });

    it("follows the harness to another replica, and back again", async () => {
      const { id } = await suite.create();
      const epoch = await acquire(id);
      const [near, far] = [await listen(id, here()), await listen(id, there())];
      for (const [n, address] of [here(), there(), here(), there()].entries()) {
        const stream = await publish(id, epoch, address);
        stream.start(`sevt_${n}`);
        stream.text(`sevt_${n}`, "text");
        await Promise.all([near.until(`sevt_${n} text`), far.until(`sevt_${n} text`)]);
        stream.end();
        await stream.done;
      }
      near.stop();
      far.stop();
    });

    it("a stream that breaks makes void what was under way", async () => {
      const { id } = await suite.create();
      const epoch = await acquire(id);
      const far = await listen(id, there());
      const harness = await harnessAt(here());
      const abort = new AbortController();
      const outbox = new Outbox();
      const done = harness.session.publishPreviews(outbox.stream(), { signal: abort.signal });
      outbox.send({
        sessionId: id,
        epoch,
        preview: { eventId: "sevt_x", message: { $case: "start", value: { eventType: "agent.message" } } },
      });
      await far.until("sevt_x start");
      abort.abort();
      await assert.rejects(done);
      await far.until("sevt_x discarded");
      far.stop();
    });

    it("who comes late hears a block from its beginning, and nothing of one that is stored", async () => {
      const { id } = await suite.create();
      const epoch = await acquire(id);
      const stream = await publish(id, epoch, here());
      const near = await listen(id, here());
      for (const block of ["sevt_stored", "sevt_open"]) {
        stream.start(block);
        stream.text(block, "text");
        await near.until(`${block} text`);
      }
      await emit(await harnessAt(there()), id, [answer("sevt_stored")], { epoch });
      const far = await listen(id, there());
      const late = await listen(id, here());
      await Promise.all([far.until("sevt_open text"), late.until("sevt_open text")]);
      stream.text("sevt_open", "more");
      await Promise.all([far.until("sevt_open more"), late.until("sevt_open more")]);
      for (const { heard } of [far, late])
        assert.deepEqual(heard, ["sevt_open start", "sevt_open text", "sevt_open more"]);
      late.stop();
      near.stop();
      far.stop();
      stream.end();
      await stream.done;
    });

    it("no replica dials another one without a watcher that wants previews, and none stays behind", async () => {
      const third = await kit().startReplica();
      try {
        const { id } = await suite.create();
        const epoch = await acquire(id);
        const stream = await publish(id, epoch, third.listening.addr);
        const subscriptions = () =>
          third.lines().filter(({ rpc }) => String(rpc).endsWith("/SubscribePreviews"));
        const plain = await kit().asClient("wrkspc_default", there());
        const without = plain.session.watchEvents(WatchEventsRequest.fromPartial({ sessionId: id }));
        await without.next();
        stream.start("sevt_1");
        const far = await listen(id, there());
        await far.until("sevt_1 start");
        assert.equal(subscriptions().length, 0, "the one subscription has not ended");
        far.stop();
        // The last watcher's going ends it.
        await third.line(({ rpc }) => String(rpc).endsWith("/SubscribePreviews"));
        assert.equal(subscriptions().length, 1);
        stream.end();
        await stream.done;
        await without.return();
      } finally {
        await third.stop();
      }
    });

    it("a replica that is killed costs its previews only: the next stream is found", async () => {
      let third = await kit().startReplica();
      try {
        const { id } = await suite.create();
        const epoch = await acquire(id);
        const far = await listen(id, there());
        const stream = await publish(id, epoch, third.listening.addr);
        stream.start("sevt_1");
        await far.until("sevt_1 start");
        await third.stop();
        await far.until("sevt_1 discarded");
        third = await kit().startReplica({ GANGLION_LISTEN: third.listening.addr });
        const again = await publish(id, epoch, third.listening.addr);
        again.start("sevt_2");
        await far.until("sevt_2 start");
        far.stop();
        again.end();
        await again.done;
      } finally {
        await third.stop();
      }
    });

    it("subscribing where nobody publishes is refused", async () => {
      const { id } = await suite.create();
      const other = await kit().as("session", "session-2");
      await assert.rejects(
        other.session.subscribePreviews({ sessionId: id }).next(),
        refused("NOT_FOUND", "SESSION_NOT_FOUND"),
      );
    });
  });
}

const textOf = (heard: string[], id: string) =>
  heard
    .filter((words) => words.startsWith(`${id} `))
    .map((words) => words.slice(id.length + 1))
    .join("");
