import assert from "node:assert/strict";
import { serializeState } from "../../../services/harness/domain/checkpoint.ts";
import { packState } from "../../../services/harness/driver/checkpoint-data.ts";
import { SessionLog } from "../../../services/harness/driver/session-log.ts";
import type { HeldLease, LogStart } from "../../../services/harness/ports/event-log.ts";
import { MemoryLog } from "./fakes/memory-log.ts";

const LONG = 220;

/** A log whose readings of pages and checkpoints are written down. */
class ReadLog extends MemoryLog {
  readings: (bigint | "checkpoint")[] = [];

  override async *read(sessionId: string, after: bigint) {
    this.readings.push(after);
    yield* super.read(sessionId, after);
  }

  override async readCheckpoint() {
    this.readings.push("checkpoint");
    return this.checkpoint;
  }
}

function longLog(): { log: ReadLog; lease: HeldLease } {
  const log = new ReadLog([{ id: "sevt_1", type: "ganglion.session_created", body: {} }]);
  for (let n = 1; n < LONG; n++) log.client("user.interrupt", {});
  return { log, lease: log.lease() };
}

async function load({ log, lease }: { log: ReadLog; lease: HeldLease }, start?: LogStart) {
  const held = { ...lease, start };
  const session = new SessionLog(log, held, new AbortController().signal);
  log.readings = [];
  const from = await session.load();
  assert.equal(held.start, undefined);
  return { from, state: session.state, readings: log.readings };
}

describe("the beginning of a log that came with its lease", () => {
  it("is read nowhere else, and the rest from its end on", async () => {
    const long = longLog();
    const { events } = long.log;
    const read = await load(long);
    assert.deepEqual(read.readings, ["checkpoint", 0n]);
    const whole = await load(long, { checkpoint: undefined, events, hasMore: false });
    assert.deepEqual(whole.readings, []);
    assert.deepEqual(whole.state, read.state);
    const part = await load(long, { checkpoint: undefined, events: events.slice(0, 50), hasMore: true });
    assert.deepEqual(part.readings, [50n]);
    assert.deepEqual(part.state, read.state);
  });

  it("goes on behind its checkpoint; one that cannot be read costs the time it would have saved", async () => {
    const long = longLog();
    const before = await load(long);
    const { position } = before.state;
    const data = await packState(serializeState(before.state)!);
    for (let n = 0; n < 3; n++) long.log.client("user.interrupt", {});
    const events = long.log.events.slice(Number(position));
    const read = await load(long);
    const good = await load(long, { checkpoint: { position, data }, events, hasMore: false });
    assert.deepEqual([good.from, good.readings], [position, []]);
    assert.deepEqual(good.state, read.state);
    const damaged = { position, data: data.subarray(0, 20) };
    const bad = await load(long, { checkpoint: damaged, events, hasMore: false });
    assert.deepEqual([bad.from, bad.readings], [0n, [0n]]);
    assert.deepEqual(bad.state, read.state);
  });
});
