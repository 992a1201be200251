import assert from "node:assert/strict";
import fc from "fast-check";
import { GanglionError } from "../../../services/common/errors/ganglion-error.ts";
import type { Preview } from "../../../services/gen/ganglion/session/v1/session_service.ts";
import { Event } from "../../../services/gen/ganglion/types/v1/event.ts";
import { SessionFeed } from "../../../services/session/live/session-feed.ts";
import { Watcher } from "../../../services/session/live/watcher.ts";
import type { Slice, SliceQuery } from "../../../services/session/ports/log-store.ts";

const NEVER = new AbortController().signal;
const ALL = { types: null, includePreviews: true };

/** A log in memory whose reads are answered when the test says so. */
class FakeLog {
  head = 0n;
  status: Slice["status"] = "idle";
  isGone = false;
  readonly reads: (() => void)[] = [];
  isHeld = false;

  read(query: SliceQuery): Promise<Slice | undefined> {
    const answer = (): Slice | undefined => {
      if (this.isGone) return undefined;
      const events: Event[] = [];
      for (let p = query.after + 1n; p <= this.head && events.length < 3; p++) {
        events.push(Event.fromPartial({ id: `e${p}`, position: p, type: "user.message" }));
      }
      const last = events.at(-1)?.position ?? query.after;
      return {
        workspaceId: "w",
        events,
        bytes: 10,
        head: this.head,
        status: this.status,
        hasMore: last < this.head,
      };
    };
    const slice = answer();
    if (!this.isHeld) return Promise.resolve(slice);
    return new Promise((resolve) => this.reads.push(() => resolve(slice)));
  }
}

const positionsOf = async (watcher: Watcher, count: number): Promise<number[]> => {
  const seen: number[] = [];
  while (seen.length < count) {
    const next = await watcher.next(1_000, NEVER);
    assert.ok(next !== undefined && next !== "quiet");
    seen.push(Number(next.position));
  }
  return seen;
};
const preview = (eventId: string, message: Preview["message"]): Preview => ({ eventId, message });
const START = { $case: "start", value: { eventType: "agent.message" } } as const;
const text = (value: string) => ({ $case: "text", value: { text: value } }) as const;

const progress = (value: number) =>
  ({ $case: "toolProgress", value: { progress: value, total: 0, message: "" } }) as const;

/** What waits for a watcher, in short. */
const wordsOf = async (watcher: Watcher): Promise<string[]> => {
  const words: string[] = [];
  for (;;) {
    const next = await watcher.next(1, NEVER);
    if (next === "quiet" || next === undefined) return words;
    const { message } = next;
    if (message?.$case === "event") words.push(`event ${message.value.id}`);
    if (message?.$case !== "preview") continue;
    const { eventId, message: inner } = message.value;
    words.push(`${eventId} ${inner?.$case === "toolProgress" ? inner.value.progress : inner?.$case}`);
  }
};

describe("a session's feed", () => {
  it("hands each watcher everything after its own position, once", async () => {
    const log = new FakeLog();
    log.head = 7n;
    const feed = new SessionFeed("s", "w", log);
    const [a, b] = [new Watcher(ALL, 2n), new Watcher(ALL, 5n)];
    assert.ok(feed.attach(a));
    assert.ok(feed.attach(b));
    assert.deepEqual(await positionsOf(a, 5), [3, 4, 5, 6, 7]);
    assert.deepEqual(await positionsOf(b, 2), [6, 7]);
  });

  it("sends a watcher that stands behind back to read by itself", async () => {
    const log = new FakeLog();
    log.head = 4n;
    const feed = new SessionFeed("s", "w", log);
    const a = new Watcher(ALL, 0n);
    feed.attach(a);
    await positionsOf(a, 4);
    assert.equal(feed.attach(new Watcher(ALL, 3n)), false);
    assert.equal(feed.attach(new Watcher(ALL, 4n)), true);
  });

  it("does not give a new watcher what was read for the ones before it [B043]", async () => {
    const log = new FakeLog();
    log.isHeld = true;
    log.head = 12n;
    const feed = new SessionFeed("s", "w", log);
    const first = new Watcher(ALL, 9n);
    feed.attach(first);
    feed.detach(first);
    const second = new Watcher(ALL, 4n);
    feed.attach(second);
    log.isHeld = false;
    for (const answer of log.reads.splice(0)) answer();
    assert.deepEqual(await positionsOf(second, 8), [5, 6, 7, 8, 9, 10, 11, 12]);
  });

  it("hands on what this process appended without reading it, and reads when something else came between", async () => {
    const log = new FakeLog();
    log.head = 4n;
    const feed = new SessionFeed("s", "w", log);
    const watcher = new Watcher(ALL, 4n);
    feed.attach(watcher);
    await Promise.resolve();
    const appended = (position: bigint): Event => Event.fromPartial({ id: `e${position}`, position });
    log.read = () => assert.fail("nothing is read for what is known");
    log.head = 6n;
    feed.offer([appended(5n), appended(6n)], 10);
    assert.deepEqual(await positionsOf(watcher, 2), [5, 6]);
    log.read = FakeLog.prototype.read;
    log.head = 9n;
    feed.offer([appended(9n)], 10);
    // The one before it is told late: what was read in the meantime stays the only copy.
    feed.offer([appended(7n), appended(8n)], 10);
    assert.deepEqual(await positionsOf(watcher, 3), [7, 8, 9]);
    assert.equal(await watcher.next(5, NEVER), "quiet");
  });

  it("whatever the order of appends, wakes, comings and goings, positions are dense", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.constantFrom("append", "offer", "wake", "join", "leave"), { maxLength: 40 }),
        async (steps) => {
          const log = new FakeLog();
          const feed = new SessionFeed("s", "w", log);
          const watchers = new Map<Watcher, bigint>();
          for (const step of steps) {
            if (step === "append") log.head += 2n;
            if (step === "offer") {
              log.head += 1n;
              feed.offer([Event.fromPartial({ id: `e${log.head}`, position: log.head })], 10);
            }
            if (step === "wake") feed.wake();
            const [oldest] = watchers.keys();
            if (step === "leave" && oldest) {
              feed.detach(oldest);
              watchers.delete(oldest);
            }
            if (step === "join") {
              const watcher = new Watcher(ALL, log.head);
              if (feed.attach(watcher)) watchers.set(watcher, log.head);
            }
            await Promise.resolve();
          }
          feed.wake();
          for (const [watcher, from] of watchers) {
            const want = Array.from({ length: Number(log.head - from) }, (_, n) => Number(from) + n + 1);
            assert.deepEqual(await positionsOf(watcher, want.length), want);
          }
        },
      ),
      { numRuns: 200 },
    );
  });

  it("ends watchers after the last event of an ended session, and with session.deleted when it is gone", async () => {
    const log = new FakeLog();
    log.head = 1n;
    log.status = "terminated";
    const ended = new Watcher(ALL, 0n);
    new SessionFeed("s", "w", log).attach(ended);
    assert.deepEqual(await positionsOf(ended, 1), [1]);
    assert.equal(await ended.next(1_000, NEVER), undefined);
    log.isGone = true;
    const deleted = new Watcher({ types: new Set(["agent.message"]), includePreviews: false }, 1n);
    new SessionFeed("s", "w", log).attach(deleted);
    const last = await deleted.next(1_000, NEVER);
    assert.ok(typeof last === "object" && last.message?.$case === "event");
    assert.equal(last.message.value.type, "session.deleted");
    assert.equal(await deleted.next(1_000, NEVER), undefined);
  });

  it("does not show a preview after its event", async () => {
    const log = new FakeLog();
    const feed = new SessionFeed("s", "w", log);
    const watcher = new Watcher(ALL, 0n);
    feed.attach(watcher);
    feed.preview(preview("e1", START));
    log.head = 1n;
    feed.wake();
    await positionsOf(watcher, 2);
    feed.preview(preview("e1", text("late")));
    assert.equal(await watcher.next(1, NEVER), "quiet");
  });

  it("shows how far a call is whose event is stored, until its result is [B092]", async () => {
    const feed = new SessionFeed("s", "w", new FakeLog());
    const watcher = new Watcher(ALL, 0n);
    feed.attach(watcher);
    const body = (mcpToolUseId: string) =>
      Event.fromPartial({ body: { $case: "agentMcpToolResult", value: { mcpToolUseId } } }).body;
    feed.offer([Event.fromPartial({ id: "call", position: 1n })], 10);
    feed.preview(preview("call", progress(1)));
    feed.preview(preview("other", progress(1)));
    feed.offer([Event.fromPartial({ id: "result", position: 2n, body: body("call") })], 10);
    feed.preview(preview("call", progress(2)));
    feed.preview(preview("other", progress(2)));
    assert.deepEqual(await wordsOf(watcher), ["event call", "call 1", "other 1", "event result", "other 2"]);
  });
});

describe("a watcher", () => {
  it("that is too slow is ended, and told so before anything else", async () => {
    const watcher = new Watcher(ALL, 0n);
    for (let p = 1n; p <= 1_100n; p++) watcher.event(Event.fromPartial({ id: `e${p}`, position: p }), 10);
    await assert.rejects(watcher.next(1, NEVER), (error) => GanglionError.is(error, "CONSUMER_TOO_SLOW"));
  });

  it("sheds previews before events: never text without its start, never text with a hole", async () => {
    const watcher = new Watcher(ALL, 0n);
    watcher.preview(preview("e1", text("unopened")));
    watcher.preview(preview("e1", START));
    for (let n = 0; n < 700; n++) watcher.preview(preview("e1", text(String(n))));
    const seen: string[] = [];
    for (;;) {
      const next = await watcher.next(1, NEVER);
      if (next === "quiet" || next === undefined) break;
      if (next.message?.$case !== "preview") continue;
      const inner = next.message.value.message;
      seen.push(inner?.$case === "text" ? inner.value.text : (inner?.$case ?? ""));
    }
    assert.deepEqual(seen.slice(0, 3), ["start", "0", "1"]);
    assert.deepEqual(
      seen.slice(1),
      Array.from({ length: seen.length - 1 }, (_, n) => String(n)),
    );
    assert.ok(seen.length < 700);
    watcher.preview(preview("e1", text("after the hole")));
    assert.equal(await watcher.next(1, NEVER), "quiet");
  });

  it("that is slow has one report of a call's progress waiting, and none when it is crowded [B092]", async () => {
    const [slow, quick] = [new Watcher(ALL, 0n), new Watcher(ALL, 0n)];
    for (let n = 1; n <= 5000; n++) {
      const shared = [preview("a", progress(n)), preview("b", progress(n))];
      for (const one of shared) for (const watcher of [slow, quick]) watcher.preview(one);
      if (n === 1) assert.deepEqual(await wordsOf(quick), ["a 1", "b 1"]);
    }
    slow.preview(preview("e1", START));
    slow.preview(preview("a", progress(5001)));
    assert.deepEqual(await wordsOf(slow), ["a 5000", "b 5000", "e1 start", "a 5001"]);
    assert.deepEqual(await wordsOf(quick), ["a 5000", "b 5000"]);
    for (let p = 1n; p <= 600n; p++) slow.event(Event.fromPartial({ id: `e${p}`, position: p }), 10);
    slow.preview(preview("a", progress(5002)));
    assert.equal((await wordsOf(slow)).at(-1), "event e600");
    slow.preview(preview("a", progress(5003)));
    assert.deepEqual(await wordsOf(slow), ["a 5003"]);
    const plain = new Watcher({ types: null, includePreviews: false }, 0n);
    plain.preview(preview("a", progress(1)));
    assert.equal(await plain.next(1, NEVER), "quiet");
  });

  it("moves on past events it did not ask for", async () => {
    const watcher = new Watcher({ types: new Set(["a"]), includePreviews: false }, 0n);
    watcher.event(Event.fromPartial({ id: "1", position: 1n, type: "b" }), 10);
    assert.equal(await watcher.next(1, NEVER), "quiet");
    assert.equal(watcher.position, 1n);
  });
});
