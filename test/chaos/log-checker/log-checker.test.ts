import assert from "node:assert/strict";
import { randomInt } from "node:crypto";
import { setTimeout as pause } from "node:timers/promises";
import { type Caller, makeFixture, SessionKit } from "../../contract/session/session-kit.ts";
import { Random } from "../../kit/random.ts";
import type { RunningService } from "../../kit/start-service.ts";
import { appender, brain, reader, type Stage, watcher } from "./actors.ts";
import { checkHistory } from "./check-history.ts";
import { readStored } from "./read-stored.ts";
import { Recorder } from "./recorder.ts";

const IS_SOAK = process.env.SOAK === "1";
const RUN_MS = IS_SOAK ? 300_000 : 16_000;
const SESSIONS = 3;
const TTL_MS = 400;
const ENV = { GANGLION_HEARTBEAT_TTL_MS: String(TTL_MS), GANGLION_DB_POOL_SIZE: "6" };

/**
 * Appenders, brains that take the lease from each other, watchers and readers at two session processes over one
 * PostgreSQL, while connections, processes and the database itself are cut down; then the log is held against
 * everything that anybody was told.
 */
describe("the log under concurrent use and failures", function () {
  this.timeout(RUN_MS + 90_000);
  let kit: SessionKit;
  let second: RunningService;
  before(async () => {
    kit = await SessionKit.start(ENV);
    second = await kit.startReplica(ENV);
  });
  after(async () => {
    await second?.stop();
    await kit?.stop();
  });

  it("loses, repeats, reorders and invents nothing [B038, B039, B041, B043, B052]", async () => {
    const seed = Number(process.env.SEED ?? randomInt(2 ** 31));
    const addresses = [kit.service.listening.addr, second.listening.addr];
    const client = await kit.asClient("wrkspc_default", addresses);
    const { create } = await makeFixture(client);
    const over = new AbortController();
    const working: Promise<void>[] = [];
    const watching: Promise<void>[] = [];
    const runs: { recorder: Recorder; whole: PromiseWithResolvers<number> }[] = [];

    for (let n = 0; n < SESSIONS; n++) {
      const recorder = new Recorder((await create()).id);
      const whole = Promise.withResolvers<number>();
      runs.push({ recorder, whole });
      const stage = (name: string, caller: Caller): Stage => ({
        name: `${name}${n}`,
        recorder,
        caller,
        random: new Random(seed, `${name}${n}`),
        over: over.signal,
      });
      for (const name of ["a", "b", "c"]) {
        working.push(appender(stage(name, await kit.asClient("wrkspc_default", addresses))));
      }
      for (const name of ["h", "i"]) {
        const harness = await kit.as("harness", `harness-${name}${n}`, addresses);
        working.push(brain(stage(name, harness), TTL_MS));
      }
      working.push(reader(stage("r", client)));
      for (const name of ["u", "v", "w"]) {
        watching.push(watcher(stage(name, await kit.asClient("wrkspc_default", addresses)), whole.promise));
      }
    }
    const all = Promise.all([...working, ...watching]);
    all.catch(() => over.abort());

    await disturb(over.signal);
    over.abort();
    await Promise.all(working);
    const events: number[] = [];
    for (const { recorder, whole } of runs) {
      const log = await readStored(client, recorder.sessionId);
      events.push(log.length);
      whole.resolve(log.length);
      const other = await readStored(
        await kit.asClient("wrkspc_default", second.listening.addr),
        recorder.sessionId,
      );
      assert.deepEqual(other, log, "two replicas disagree");
    }
    await all;
    for (const { recorder } of runs) {
      const log = await readStored(client, recorder.sessionId);
      const faults = checkHistory({ ...recorder, log });
      assert.deepEqual(faults.slice(0, 10), [], `seed ${seed}: ${faults.length} faults`);
    }
    const attempts = runs.flatMap(({ recorder }) => recorder.attempts);
    const count = (kind: string) => attempts.filter(({ outcome }) => outcome.kind === kind).length;
    // What was never tried proves nothing.
    for (const kind of ["acknowledged", "refused", "ambiguous"])
      assert.ok(count(kind) > 0, `no ${kind} attempt`);
    const stale = attempts.some(
      ({ outcome }) => outcome.kind === "refused" && outcome.reason === "STALE_EPOCH",
    );
    assert.ok(stale, "no brain was fenced");
    assert.ok(runs.every(({ recorder }) => recorder.taken.length > 1 && recorder.reads.length > 10));
    for (const service of [kit.service, second]) {
      assert.doesNotMatch(service.output(), /"code":"INTERNAL"/);
    }
  });

  // One thing after another until the time is over; every kind at least once.
  async function disturb(signal: AbortSignal): Promise<void> {
    const end = performance.now() + RUN_MS;
    const kinds = [cutSome, cutHints, killReplica, cutSome, restartDatabase, cutHints, cutSome];
    for (let n = 0; performance.now() < end && !signal.aborted; n++) {
      await pause(RUN_MS / (IS_SOAK ? 100 : 12));
      const kind = kinds[n % kinds.length];
      await kind?.();
    }
  }

  async function backends(where: string): Promise<number[]> {
    const rows = await kit.sql(
      "ganglion_owner",
      `SELECT pid FROM pg_stat_activity WHERE usename = 'ganglion_session' AND ${where}`,
    );
    return rows.map(({ pid }) => pid as number);
  }
  // The owner of the database may not end backends of other roles; the processes belong to the test's server.
  const terminate = (pids: number[]) => {
    for (const pid of pids) process.kill(pid, "SIGTERM");
  };
  async function cutSome(): Promise<void> {
    const pids = await backends("true");
    terminate(pids.filter((_, index) => index % 2 === 0));
  }
  async function cutHints(): Promise<void> {
    terminate(await backends("(query LIKE 'LISTEN%' OR query LIKE '%pg_notify%' OR query = 'SELECT 1')"));
  }
  async function killReplica(): Promise<void> {
    const address = second.listening.addr;
    await second.stop();
    second = await kit.startReplica({ ...ENV, GANGLION_LISTEN: address });
  }
  async function restartDatabase(): Promise<void> {
    await kit.postgres.server.stop();
    await kit.postgres.restart();
  }
});
