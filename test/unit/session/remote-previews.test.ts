import assert from "node:assert/strict";
import { GanglionError } from "../../../services/common/errors/ganglion-error.ts";
import { createLogger } from "../../../services/common/log/create-logger.ts";
import type { Preview } from "../../../services/gen/ganglion/session/v1/session_service.ts";
import { Publication } from "../../../services/session/previews/publication.ts";
import { RemotePreviews } from "../../../services/session/previews/remote-previews.ts";

const HERE = "127.0.0.1:1";
const start = (eventId: string): Preview => ({
  eventId,
  message: { $case: "start", value: { eventType: "agent.message" } },
});
const text = (eventId: string, value: string): Preview => ({
  eventId,
  message: { $case: "text", value: { text: value } },
});
const word = ({ eventId, message }: Preview) =>
  `${eventId} ${message?.$case === "text" ? message.value.text : message?.$case}`;
const lost = () => new GanglionError({ code: "UNAVAILABLE", reason: "UNREACHABLE", message: "gone" });
const turns = async () => {
  for (let n = 0; n < 20; n++) await new Promise((resolve) => setImmediate(resolve));
};

/** A network of replicas that a test plays. */
class Played {
  place: string | undefined;
  readonly dialled: string[] = [];
  readonly heard: string[] = [];
  open = 0;
  /** What each subscription to an address gives; it ends, fails or goes on with its promise. */
  answers: (address: string) => AsyncGenerator<Preview> = async function* () {};
  readonly previews = new RemotePreviews({
    places: { find: async () => this.place },
    address: () => HERE,
    deliver: (_sessionId, preview) => void this.heard.push(word(preview)),
    log: createLogger({ service: "session", instance: "session-1" }, "error"),
    subscribe: (address, _sessionId, signal) => this.#subscribe(address, signal),
  });

  async *#subscribe(address: string, signal: AbortSignal): AsyncGenerator<Preview> {
    this.dialled.push(address);
    this.open += 1;
    const aborted = new Promise<never>((_, reject) =>
      signal.addEventListener("abort", () => reject(lost()), { once: true }),
    );
    aborted.catch(() => {});
    const answers = this.answers(address);
    try {
      for (;;) {
        const next = await Promise.race([answers.next(), aborted]);
        if (next.done) return;
        yield next.value;
      }
    } finally {
      this.open -= 1;
    }
  }
}
const forever = () => new Promise<never>(() => {});

describe("previews of other replicas", () => {
  it("are dialled for while somebody wants them, once for all of them", async () => {
    const played = new Played();
    played.place = "a";
    played.answers = async function* () {
      yield start("e");
      await forever();
    };
    played.previews.published("sesn_1", "a");
    await turns();
    assert.deepEqual(played.dialled, []);
    const [first, second] = [played.previews.want("sesn_1"), played.previews.want("sesn_1")];
    await turns();
    assert.deepEqual([played.dialled, played.heard], [["a"], ["e start"]]);
    first();
    first();
    await turns();
    assert.equal(played.open, 1);
    second();
    await turns();
    assert.equal(played.open, 0);
  });

  it("are not dialled for at this replica, nor where nobody knows", async () => {
    const played = new Played();
    for (const place of [HERE, undefined]) {
      played.place = place;
      const leave = played.previews.want("sesn_1");
      await turns();
      leave();
    }
    assert.deepEqual(played.dialled, []);
  });

  it("follow the harness, and void what was under way where it was before", async () => {
    const played = new Played();
    played.place = "a";
    played.answers = async function* (address) {
      yield start(`at-${address}`);
      await forever();
    };
    const leave = played.previews.want("sesn_1");
    await turns();
    played.previews.published("sesn_1", "b");
    await turns();
    assert.deepEqual(played.dialled, ["a", "b"]);
    assert.deepEqual(played.heard.toSorted(), ["at-a discarded", "at-a start", "at-b start"]);
    played.previews.published("sesn_1", HERE);
    await turns();
    assert.equal(played.open, 0);
    leave();
  });

  it("are found again when one stream ends while the next is told of", async () => {
    const played = new Played();
    played.place = "a";
    const end = Promise.withResolvers<void>();
    let round = 0;
    played.answers = async function* () {
      round += 1;
      yield start(`round-${round}`);
      if (round === 1) await end.promise;
      else await forever();
    };
    const leave = played.previews.want("sesn_1");
    await turns();
    played.previews.published("sesn_1", "a");
    end.resolve();
    await turns();
    assert.deepEqual(played.heard, ["round-1 start", "round-2 start"]);
    leave();
  });

  it("are tried again when the link breaks, and not where nobody streams them any more", async () => {
    const played = new Played();
    played.place = "a";
    const tried = Promise.withResolvers<void>();
    let round = 0;
    played.answers = async function* () {
      round += 1;
      if (round === 1) {
        yield start("e");
        throw lost();
      }
      tried.resolve();
      throw new GanglionError({ code: "NOT_FOUND", reason: "SESSION_NOT_FOUND", message: "nobody" });
    };
    const leave = played.previews.want("sesn_1");
    await tried.promise;
    await turns();
    assert.deepEqual(played.heard, ["e start", "e discarded"]);
    assert.deepEqual(played.dialled, ["a", "a"]);
    played.previews.gap();
    await turns();
    assert.equal(played.dialled.length, 3);
    leave();
    played.previews.close();
  });

  it("void no more than the newest blocks of a stream that breaks after many", async () => {
    const played = new Played();
    played.place = "a";
    const tried = Promise.withResolvers<void>();
    played.answers = async function* () {
      if (played.dialled.length > 1) {
        tried.resolve();
        return;
      }
      for (let n = 0; n < 20; n++) yield start(`e${n}`);
      throw lost();
    };
    const leave = played.previews.want("sesn_1");
    await tried.promise;
    assert.deepEqual(
      played.heard.slice(20),
      [12, 13, 14, 15, 16, 17, 18, 19].map((n) => `e${n} discarded`),
    );
    leave();
    played.previews.close();
  });
});

describe("a publication", () => {
  it("gives who comes late the blocks under way from their beginning, but not what is stored", async () => {
    const publication = new Publication(1n, () => {});
    for (const preview of [start("a"), text("a", "x"), start("b"), text("b", "y"), text("b", "z")]) {
      publication.push(preview);
    }
    const late = publication.subscribe(new Set(["a"]));
    publication.push(text("b", "!"));
    const heard: string[] = [];
    publication.end(new Set(["b"]));
    for (;;) {
      const next = await late.next(10, AbortSignal.timeout(1_000));
      if (!next || next === "quiet" || next.message?.$case !== "preview") break;
      heard.push(word(next.message.value));
    }
    // What was under way and is in the log is not void.
    assert.deepEqual(heard, ["b start", "b yz", "b !"]);
  });

  it("keeps a bounded part of what is under way", async () => {
    const publication = new Publication(1n, () => {});
    for (let n = 0; n < 20; n++) publication.push(start(`e${n}`));
    assert.equal(publication.openIds.length, 8);
    publication.push(text("e19", "x".repeat(70_000)));
    const late = publication.subscribe(new Set());
    publication.end(new Set(publication.openIds));
    let count = 0;
    while ((await late.next(10, AbortSignal.timeout(1_000))) !== undefined) count += 1;
    assert.equal(count, 7);
  });

  it("hands its subscribers on to the stream that takes its place, and voids its own blocks", async () => {
    const here: string[] = [];
    const deliver = (preview: Preview) => void here.push(word(preview));
    const first = new Publication(1n, deliver);
    first.push(start("a"));
    const subscriber = first.subscribe(new Set());
    const second = new Publication(2n, deliver, first.handOver());
    second.push(start("b"));
    first.end(new Set());
    second.unsubscribe(subscriber);
    second.push(text("b", "unheard"));
    assert.deepEqual(here, ["a start", "a discarded", "b start", "b unheard"]);
    subscriber.end();
    const heard: string[] = [];
    for (;;) {
      const next = await subscriber.next(10, AbortSignal.timeout(1_000));
      if (!next || next === "quiet" || next.message?.$case !== "preview") break;
      heard.push(word(next.message.value));
    }
    assert.deepEqual(heard, ["a start", "a discarded", "b start"]);
  });
});
