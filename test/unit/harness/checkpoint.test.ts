import assert from "node:assert/strict";
import { inflateSync } from "node:zlib";
import fc from "fast-check";
import { pino } from "pino";
import type { Event } from "../../../services/gen/ganglion/types/v1/event.ts";
import { parseState, serializeState } from "../../../services/harness/domain/checkpoint.ts";
import { decide } from "../../../services/harness/domain/decide.ts";
import { fold } from "../../../services/harness/domain/fold.ts";
import { projectRequest } from "../../../services/harness/domain/project-request.ts";
import { emptyState, type SessionState } from "../../../services/harness/domain/session-state.ts";
import { Checkpoints } from "../../../services/harness/driver/checkpoints.ts";
import { goldenLogs, loadLog } from "../../golden/load-log.ts";
import { describeState } from "./describe-state.ts";
import { anyLog } from "./fakes/any-log.ts";
import { session, World } from "./fakes/brain.ts";
import { answer } from "./fakes/scripted-parts.ts";

describe("a checkpoint", () => {
  for (const name of goldenLogs()) {
    it(`of any beginning of ${name} and the rest equal the fold from the start`, () => {
      const log = loadLog(name);
      for (let at = 0; at <= log.length; at++) assertSame(log, at);
    });
  }

  it("of any log, anywhere, and the rest equal the fold from the start", () => {
    fc.assert(fc.property(anyLog, fc.nat(40), (log, at) => assertSame(log, Math.min(at, log.length))));
  });

  it("that is damaged, foreign or of another version is not read", () => {
    const written = serializeState(loadLog("parallel-tools-hand-lost").reduce(fold, emptyState()))!;
    assert.ok(parseState(written));
    assert.equal(parseState(written.subarray(0, written.length - 1000)), undefined);
    assert.equal(parseState(Buffer.from("hello")), undefined);
    assert.equal(parseState(new Uint8Array(0)), undefined);
    const other = Buffer.from(written.toString("latin1").replace("activeMs,", "activeMx,"), "latin1");
    assert.equal(parseState(other), undefined);
  });

  it("keeps the order of a schema's keys and names that mean something to JavaScript", () => {
    const schema = JSON.parse('{"z":1,"__proto__":{"a":1},"$b":[0,1],"a":{"type":"object"}}') as object;
    const tools = [{ type: "custom", name: "x", description: "", input_schema: schema }];
    const world = new World(session({ tools }));
    const state = world.log.events.reduce(fold, emptyState());
    const again = parseState(serializeState(state)!)!;
    assert.deepEqual(projectRequest(again), projectRequest(state));
  });

  it("is kept when a long session goes idle and is where the next brain begins; a broken one changes nothing", async () => {
    const world = new World(
      session(),
      answer("end_turn", "One."),
      answer("end_turn", "Two."),
      answer("end_turn", "Three."),
    );
    for (let i = 0; i < 220; i++) world.log.client("session.error", { message: `m${i}` });
    const { end } = world.brain(5000);
    await world.log.until(() => world.log.checkpoint !== undefined);
    const kept = world.log.checkpoint!;
    assert.equal(kept.position, world.log.head);
    let readFrom: bigint | undefined;
    const { read } = world.log;
    world.log.read = (id, after) => {
      readFrom ??= after;
      return read.call(world.log, id, after);
    };
    world.log.client("user.message", { content: [{ type: "text", text: "More." }] });
    const next = world.brain();
    await Promise.all([end, next.end]);
    assert.equal(readFrom, kept.position);
    assert.equal(world.model.requests.length, 2);

    world.log.checkpoint = { position: kept.position, data: Buffer.from("nonsense") };
    readFrom = undefined;
    world.log.client("user.message", { content: [{ type: "text", text: "Once more." }] });
    await world.drive();
    assert.equal(readFrom, 0n);
    assert.equal(world.model.requests.length, 3);
  });

  it("of a long session is written down in slices, and holds what came meanwhile", async () => {
    const world = new World(session());
    for (let i = 0; i < 5; i++) world.log.client("user.message", { content: [{ type: "text", text: "?" }] });
    const state = world.log.events.reduce(fold, emptyState());
    const [turn] = state.queued;
    state.turns = Array.from({ length: 1000 }, () => ({ ...turn!, through: state.position }));
    const { log } = world;
    const logger = pino({ level: "silent" });
    const checkpoints = new Checkpoints(log, log.lease(), logger, new AbortController().signal);
    state.position = 1000n;
    checkpoints.offer(state);
    log.client("user.message", { content: [{ type: "text", text: "More." }] });
    fold(state, { ...log.events.at(-1)!, position: 1001n });
    await log.until(() => log.checkpoint !== undefined);
    const { position, data } = log.checkpoint!;
    assert.equal(position, 1001n);
    assert.deepEqual(parseState(inflateSync(data))?.queued, state.queued);
  });
});

function assertSame(log: readonly Event[], at: number): void {
  const half = log.slice(0, at).reduce(fold, emptyState());
  const written = serializeState(half);
  assert.ok(written);
  const read = parseState(written);
  assert.ok(read);
  assert.deepEqual(serializeState(read), written);
  const [whole, resumed] = [log.reduce(fold, emptyState()), log.slice(at).reduce(fold, read)];
  assert.deepEqual(describeState(resumed), describeState(whole));
  assert.deepEqual(serializeState(resumed), serializeState(whole));
  assert.deepEqual(decide(resumed), decide(whole));
  assert.deepEqual(requestOf(resumed), requestOf(whole));
}

function requestOf(state: SessionState): Buffer | undefined {
  try {
    return projectRequest(state);
  } catch {
    return undefined;
  }
}
