import assert from "node:assert/strict";
import { checkHistory } from "../../chaos/log-checker/check-history.ts";
import type {
  Attempt,
  Fault,
  History,
  Outcome,
  Read,
  Seen,
  Stored,
} from "../../chaos/log-checker/history.ts";

const own = (position: number, id: string): Stored => ({ position, id, epoch: 0, isOwn: true });
const by = (position: number, id: string, epoch = 0): Stored => ({ position, id, epoch, isOwn: false });
const ack = (...stored: [number, string][]): Outcome => ({
  kind: "acknowledged",
  stored: stored.map(([position, id]) => ({ position, id, isDuplicate: false })),
});
const attempt = (
  ids: string[],
  begun: number,
  ended: number,
  outcome: Outcome,
  more: Partial<Attempt> = {},
) => ({
  ids,
  begun,
  ended,
  outcome,
  ...more,
});
const conflict: Outcome = { kind: "refused", reason: "POSITION_CONFLICT" };
const read = (events: Seen[], head: number, more: Partial<Read> = {}): Read => ({
  after: 0,
  before: 0,
  isDescending: false,
  events,
  head,
  hasMore: false,
  begun: 100,
  ...more,
});

// A history in which all is well: two batches, one attempt that nobody answered, one refused, one takeover.
const LOG: readonly Stored[] = [
  own(1, "made"),
  by(2, "a"),
  by(3, "b"),
  own(4, "lease"),
  by(5, "h", 1),
  by(6, "c"),
];
const seen = (from = 1, to = LOG.length): Seen[] =>
  LOG.slice(from - 1, to).map(({ position, id }) => ({ position, id }));
const GOOD: History = {
  log: LOG,
  attempts: [
    attempt(["a", "b"], 1, 2, ack([2, "a"], [3, "b"]), { expected: 1 }),
    attempt(["x"], 3, 4, conflict, { expected: 1 }),
    attempt(["h"], 6, 7, ack([5, "h"]), { epoch: 1 }),
    attempt(["c"], 8, 9, { kind: "ambiguous" }),
    attempt(["c"], 10, 11, ack([6, "c"])),
    attempt(["never"], 8, 9, { kind: "ambiguous" }),
  ],
  taken: [{ epoch: 1, ended: 5 }],
  reads: [
    read(seen(), 6),
    read(seen(1, 2), 6, { hasMore: true }),
    read(seen(3, 4).reverse(), 6, { after: 2, before: 5, isDescending: true }),
    read(seen(1, 3), 3, { begun: 1 }),
  ],
  watched: [{ name: "w", after: 2, events: seen(3) }],
};

describe("the log checker", () => {
  it("finds nothing in a history in which all is well", () => {
    assert.deepEqual(checkHistory(GOOD), []);
  });

  const finds = (kind: Fault["kind"], what: string, bad: Partial<History>) => {
    it(`finds ${what} (${kind})`, () => {
      const kinds = checkHistory({ ...GOOD, ...bad }).map((fault) => fault.kind);
      assert.ok(kinds.includes(kind), `found ${kinds.join(", ") || "nothing"}`);
    });
  };
  const withAttempt = (...more: Attempt[]): Partial<History> => ({ attempts: [...GOOD.attempts, ...more] });
  const withWatch = (events: Seen[], after = 0): Partial<History> => ({
    watched: [{ name: "w", after, events }],
  });

  finds("gap", "a position that is missing", { log: [...LOG, by(8, "never")] });
  finds("duplicated", "an event that is there twice", { log: [...LOG, by(7, "c")] });
  finds("phantom", "an event that nobody appended", { log: [...LOG, by(7, "who")] });
  finds("phantom", "an event that was refused", { log: [...LOG, by(7, "x")] });
  finds("lost", "an acknowledged event that is gone", withAttempt(attempt(["z"], 20, 21, ack([7, "z"]))));
  finds(
    "moved",
    "an event at another place than was said",
    withAttempt(attempt(["c"], 12, 13, ack([7, "c"]))),
  );
  finds("torn", "half a batch", {
    ...withAttempt(attempt(["d", "e"], 20, 21, { kind: "ambiguous" })),
    log: [...LOG, by(7, "d")],
  });
  finds("torn", "a batch with something in between", {
    ...withAttempt(attempt(["d", "e"], 20, 21, { kind: "ambiguous" }), attempt(["f"], 20, 21, ack([8, "f"]))),
    log: [...LOG, by(7, "d"), by(8, "f"), by(9, "e")],
  });
  finds("reordered", "an append that comes before one that was done when it began", {
    ...withAttempt(
      attempt(["late"], 30, 31, ack([7, "late"])),
      attempt(["early"], 20, 21, ack([8, "early"])),
    ),
    log: [...LOG, by(7, "late"), by(8, "early")],
  });
  finds("unjustified append", "an append past the head that it wanted", {
    ...withAttempt(attempt(["d"], 20, 21, ack([7, "d"]), { expected: 5 })),
    log: [...LOG, by(7, "d")],
  });
  finds(
    "unjustified append",
    "two appends at the same head [B041]",
    (() => {
      const both = withAttempt(
        attempt(["d"], 20, 22, ack([7, "d"]), { expected: 6 }),
        attempt(["e"], 20, 22, ack([8, "e"]), { expected: 6 }),
      );
      return { ...both, log: [...LOG, by(7, "d"), by(8, "e")] };
    })(),
  );
  finds(
    "unjustified refusal",
    "a refusal although the head was the wanted one all the time",
    withAttempt(attempt(["d"], 20, 21, conflict, { expected: 6 })),
  );
  finds("fence broken", "an epoch that goes back in the log", {
    ...withAttempt(attempt(["g"], 6, 9, { kind: "ambiguous" }), attempt(["k"], 6, 9, { kind: "ambiguous" })),
    log: [...LOG, by(7, "g", 2), by(8, "k", 1)],
  });
  finds("fence broken", "an append of a brain that lost its lease before", {
    ...withAttempt(attempt(["g"], 20, 21, ack([7, "g"]), { epoch: 1 })),
    taken: [...GOOD.taken, { epoch: 2, ended: 15 }],
    log: [...LOG, by(7, "g", 1)],
  });
  finds("stale read", "a reader who misses what was acknowledged before", { reads: [read(seen(1, 3), 3)] });
  finds("wrong slice", "a reader who sees another order", {
    reads: [read([...seen(1, 1), ...seen(3, 3), ...seen(2, 2), ...seen(4)], 6)],
  });
  finds("wrong slice", "a slice with a hole", { reads: [read([...seen(1, 2), ...seen(4)], 6)] });
  finds("wrong slice", "a slice that ends early without saying so", { reads: [read(seen(1, 4), 6)] });
  finds("wrong slice", "an event that is not in the log", {
    reads: [read([...seen(1, 5), { position: 6, id: "who" }], 6)],
  });
  finds("lost", "a watcher that missed one", withWatch([...seen(1, 2), ...seen(4)]));
  finds("lost", "a watcher that was not told the end", withWatch(seen(1, 5)));
  finds("duplicated", "a watcher that was told twice", withWatch([...seen(1, 3), ...seen(3)]));
  finds("reordered", "a watcher that was sent back", withWatch([...seen(1, 4), ...seen(2)]));
  finds(
    "phantom",
    "a watcher that was told something else",
    withWatch([...seen(1, 5), { position: 6, id: "who" }]),
  );
});
