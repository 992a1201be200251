import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import fc from "fast-check";
import { pino } from "pino";
import type { Event } from "../../../services/gen/ganglion/types/v1/event.ts";
import {
  CHECKPOINT_FORMAT,
  parseState,
  prepareTurns,
  serializeState,
  type WrittenState,
} from "../../../services/harness/domain/checkpoint.ts";
import { projectCompaction } from "../../../services/harness/domain/context/project-compaction.ts";
import { decide } from "../../../services/harness/domain/decide.ts";
import { fold } from "../../../services/harness/domain/fold.ts";
import { foldAhead } from "../../../services/harness/domain/fold-ahead.ts";
import { project, projectRequest } from "../../../services/harness/domain/project-request.ts";
import { emptyState, type SessionState } from "../../../services/harness/domain/session-state.ts";
import { payloadsIn } from "../../../services/harness/driver/build-request.ts";
import { packState, unpackState } from "../../../services/harness/driver/checkpoint-data.ts";
import { Checkpoints } from "../../../services/harness/driver/checkpoints.ts";
import { goldenLogs, loadLog, toEvents } from "../../golden/load-log.ts";
import { describeState } from "./describe-state.ts";
import { anyLog } from "./fakes/any-log.ts";
import { askedOnce } from "./fakes/asked-once.ts";
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

  it("that is foreign or of another version is not read", () => {
    const written = serializeState(loadLog("parallel-tools-hand-lost").reduce(fold, emptyState()), 0)!;
    const { head, text, older } = written;
    assert.ok(parse(written));
    assert.equal(parse({ head: head.subarray(0, head.length - 1000), text, older }), undefined);
    assert.equal(parse({ head: Buffer.from("hello"), text, older }), undefined);
    assert.equal(parse({ head: Buffer.alloc(0), text, older }), undefined);
    const other = Buffer.from(head.toString("latin1").replace("activeMs,", "activeMx,"), "latin1");
    assert.equal(parse({ head: other, text, older }), undefined);
  });

  it("is the same whether its turns were prepared before or not, however many at a time", () => {
    for (const slice of [1, 7, 1000]) {
      const state = longConversation(40);
      for (let from = 0; from < state.turns.length; from += slice) prepareTurns(state, from, from + slice);
      assert.deepEqual(serializeState(state), serializeState(longConversation(40)));
    }
  });

  it("that has one other byte anywhere, or is cut, is not read", async () => {
    const written = serializeState(longConversation(40))!;
    const packed = await packState(written);
    const { head, text, older } = await unpackState(packed);
    assert.deepEqual({ head, text, older: older() }, written);
    assert.ok(written.head.length > 4096 && written.text.length > 4096 && written.older.length > 4096);
    for (let at = 0; at < packed.length; at += at < 64 ? 1 : 97) {
      const damaged = Buffer.from(packed);
      damaged[at]! ^= 1 << (at % 8);
      await assert.rejects(unpackState(damaged), `byte ${at}`);
    }
    for (const length of [0, 31, 55, 56, packed.length - 1])
      await assert.rejects(unpackState(packed.subarray(0, length)), `${length} bytes`);
    await assert.rejects(unpackState(Buffer.concat([packed, Buffer.from("x")])));
  });

  it("has its older turns read by nobody who decides, asks the model, or closes a call", () => {
    const state = longConversation(40);
    const { head, text, older } = serializeState(state)!;
    assert.ok(older.length > head.length / 2);
    const unread = () => assert.fail("an older turn was looked at");
    const read = parseState({ head, text, older: unread })!;
    for (const event of toEvents(askedOnce(40)).map((event, i) =>
      at(event, state.position + BigInt(i) + 1n),
    )) {
      const { id, body } = event;
      const ahead =
        body?.$case === "agentToolResult" ? [state, read].map((seen) => foldAhead(seen, [{ id, body }])) : [];
      const states = [fold(state, event), fold(read, event)];
      for (const [whole, resumed] of [states, ahead]) {
        if (!whole || !resumed) continue;
        const action = decide(resumed);
        assert.deepEqual(action, decide(whole));
        assert.deepEqual(payloadsIn(resumed), []);
        if (action.type === "call_model") assert.deepEqual(project(resumed), project(whole));
      }
    }
    assert.equal(state.turns.length, 1 + 41 * 3);
    assert.deepEqual(describeState(parse(serializeState(state)!)!), describeState(state));
  });

  it("is of another format when states or requests are not what they were", () => {
    const hash = createHash("sha256");
    for (const folder of ["states/", "requests/"])
      for (const name of readdirSync(new URL(folder, GOLDEN)).sort())
        hash.update(`${name}\n`).update(readFileSync(new URL(`${folder}${name}`, GOLDEN)));
    const made = `${CHECKPOINT_FORMAT} ${hash.digest("hex").slice(0, 16)}`;
    assert.equal(
      made,
      "ganglion/4 e0a541cf22e0617e",
      "raise CHECKPOINT_FORMAT unless golden files only came, and write the new digest down",
    );
  });

  it("keeps the order of a schema's keys and names that mean something to JavaScript", () => {
    const schema = JSON.parse('{"z":1,"__proto__":{"a":1},"$b":[0,1],"a":{"type":"object"}}') as object;
    const tools = [{ type: "custom", name: "x", description: "", input_schema: schema }];
    const world = new World(session({ tools }));
    const state = world.log.events.reduce(fold, emptyState());
    const again = parse(serializeState(state)!)!;
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
    assert.deepEqual(parseState(await unpackState(data))?.queued, state.queued);
  });
});

const GOLDEN = new URL("../../golden/", import.meta.url);

function parse({ head, text, older }: WrittenState): SessionState | undefined {
  return parseState({ head, text, older: () => older });
}

// With none of the newest turns read at once all that may be read later is.
function assertSame(log: readonly Event[], at: number, newest = [0, 2, 8]): void {
  for (const count of newest) {
    const half = log.slice(0, at).reduce(fold, emptyState());
    const written = serializeState(half, count);
    assert.ok(written);
    const read = parse(written);
    assert.ok(read);
    assert.deepEqual(serializeState(read, count), written);
    const [whole, resumed] = [log.reduce(fold, emptyState()), log.slice(at).reduce(fold, read)];
    // Before anything is looked at, and when all of it has been.
    assert.deepEqual(decide(resumed), decide(whole));
    assert.deepEqual(requestOf(resumed), requestOf(whole));
    assert.deepEqual(describeState(resumed), describeState(whole));
    assert.deepEqual(serializeState(resumed, count), serializeState(whole, count));
  }
}

/** A conversation of so many turns with a call each. */
function longConversation(turns: number): SessionState {
  const written = Array.from({ length: turns }, (_, n) => askedOnce(n)).flat();
  return toEvents([...session({}, "Begin."), ...written]).reduce(fold, emptyState());
}

function at(event: Event, position: bigint): Event {
  return { ...event, position };
}

function requestOf(state: SessionState): Buffer | undefined {
  const action = decide(state);
  if (action.type === "compact") return projectCompaction(state, action.plan);
  try {
    return projectRequest(state);
  } catch {
    return undefined;
  }
}
