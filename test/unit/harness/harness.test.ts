import assert from "node:assert/strict";
import { pino } from "pino";
import { GanglionError } from "../../../services/common/errors/ganglion-error.ts";
import { rulesEvaluator } from "../../../services/harness/domain/rules-evaluator.ts";
import { Harness } from "../../../services/harness/driver/harness.ts";
import type { HeldLease } from "../../../services/harness/ports/event-log.ts";
import type { Leases } from "../../../services/harness/ports/leases.ts";
import { session } from "./fakes/brain.ts";
import { MemoryLog } from "./fakes/memory-log.ts";
import { answer, JournalHands, ListModel, ListPreviews, MapMcp, tokens } from "./fakes/scripted-parts.ts";

/** A session service for one log: gives it to whoever asks while nobody holds it. */
class OneSession implements Leases {
  readonly log: MemoryLog;
  readonly released: (bigint | undefined)[] = [];
  acquired = 0;
  isBeating = true;
  /** How often giving back is not answered. */
  unanswered = 0;
  #isHeld = false;
  #changed: (() => void) | undefined;

  constructor(log: MemoryLog) {
    this.log = log;
  }

  async heartbeat(): Promise<number> {
    if (!this.isBeating) throw new Error("no answer");
    return 80;
  }

  async acquire(): Promise<HeldLease | undefined> {
    if (this.#isHeld) return undefined;
    this.#isHeld = true;
    this.acquired += 1;
    return this.log.lease();
  }

  async release(_lease: HeldLease, settledPosition?: bigint): Promise<void> {
    if (this.unanswered-- > 0) {
      throw new GanglionError({ code: "UNAVAILABLE", reason: "UNREACHABLE", message: "nobody answers" });
    }
    // Once is enough for these tests.
    this.released.push(settledPosition);
    this.#changed?.();
  }

  async *runnable(): AsyncGenerator<number> {
    yield 1;
  }

  async wasReleased(): Promise<void> {
    while (this.released.length === 0) {
      await new Promise<void>((resolve) => {
        this.#changed = resolve;
      });
    }
  }
}

describe("a harness", () => {
  const open: Harness[] = [];
  afterEach(async () => {
    for (const harness of open.splice(0)) await harness.close();
  });

  function harnessOf(leases: OneSession, model: ListModel, lingerMs = 0): Harness {
    const harness = new Harness({
      leases,
      ports: {
        log: leases.log,
        model,
        hands: new JournalHands(),
        mcp: new MapMcp(),
        tokens,
        openPreviews: () => new ListPreviews(),
        evaluator: rulesEvaluator,
      },
      logger: pino({ level: "silent" }),
      patience: { callMs: 50, retryMs: 5, interruptMs: 50, evaluatorMs: 50 },
      maxSessions: 4,
      lingerMs,
      pollMs: 50,
      stopGraceMs: 500,
    });
    open.push(harness);
    return harness;
  }

  it("finds work, does it, and gives the session back with the position it has settled", async () => {
    const leases = new OneSession(new MemoryLog(session()));
    await harnessOf(leases, new ListModel(answer("end_turn", "Hi."))).start();
    await leases.wasReleased();
    assert.deepEqual(leases.released, [leases.log.head]);
  });

  it("gives a session back until somebody answers: it goes on beating, and nobody else would ever get it [B135]", async () => {
    const leases = new OneSession(new MemoryLog(session()));
    leases.unanswered = 3;
    await harnessOf(leases, new ListModel(answer("end_turn", "Hi."))).start();
    await leases.wasReleased();
    assert.deepEqual(leases.released, [leases.log.head]);
  });

  it("drives a session once, however often it is woken [B149]", async () => {
    const leases = new OneSession(new MemoryLog(session()));
    const hang = () => new Promise<never>(() => {});
    const harness = harnessOf(leases, new ListModel(hang));
    await harness.start();
    const epochs = await Promise.all(
      [1, 2, 3].map(() => until(() => harness.active.length === 1).then(() => harness.wake("sesn_1"))),
    );
    assert.deepEqual(new Set(epochs), new Set([leases.log.epoch]));
    assert.equal(leases.acquired, 1);
    assert.equal(harness.active.length, 1);
  });

  it("stops by itself when nobody answers its heartbeats for as long as they last", async () => {
    const leases = new OneSession(new MemoryLog(session()));
    const aborted = Promise.withResolvers<void>();
    const model = new ListModel((signal) => {
      signal.addEventListener("abort", () => aborted.resolve());
      return new Promise<never>(() => {});
    });
    const harness = harnessOf(leases, model);
    await harness.start();
    await leases.log.until(() => leases.log.types().includes("spanModelRequestStart"));
    leases.isBeating = false;
    await aborted.promise;
    assert.equal(harness.isAlive, false);
    assert.ok(!leases.log.types().includes("spanModelRequestEnd"));
  });

  it("takes nothing new while it drains", async () => {
    const leases = new OneSession(new MemoryLog(session()));
    const harness = harnessOf(leases, new ListModel(answer("end_turn", "Hi.")), 60_000);
    await harness.start();
    await leases.log.until(() => leases.log.types().includes("sessionStatusIdle"));
    assert.equal(await harness.drain(), 1);
    assert.equal(leases.released.length, 1);
    await assert.rejects(harness.wake("sesn_2"), { reason: "DRAINING" });
  });
});

/** Waits for something that happens within this process. */
async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setImmediate(resolve));
}
