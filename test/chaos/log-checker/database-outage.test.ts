import assert from "node:assert/strict";
import { randomInt } from "node:crypto";
import { setTimeout as pause } from "node:timers/promises";
import { type Caller, makeFixture, SessionKit } from "../../contract/session/session-kit.ts";
import { Random } from "../../kit/random.ts";
import type { RunningService } from "../../kit/start-service.ts";
import { appender, type Stage, watcher } from "./actors.ts";
import { checkHistory } from "./check-history.ts";
import type { Attempt } from "./history.ts";
import { readStored } from "./read-stored.ts";
import { Recorder } from "./recorder.ts";

const OUTAGE_MS = process.env.SOAK === "1" ? 60_000 : 6_000;

/** The database is away for a while, and nobody loses an event: appenders insist, watchers come back. */
describe("a database that is away", function () {
  this.timeout(2 * OUTAGE_MS + 90_000);
  let kit: SessionKit;
  let second: RunningService;
  before(async () => {
    kit = await SessionKit.start();
    second = await kit.startReplica();
  });
  after(async () => {
    await second?.stop();
    await kit?.stop();
  });

  const outages: [string, () => Promise<void>][] = [
    [
      "stopped",
      async () => {
        await kit.postgres.server.stop();
        await pause(OUTAGE_MS);
        await kit.postgres.restart();
      },
    ],
    [
      "frozen",
      async () => {
        // The postmaster and every backend: connections stay, and nobody answers.
        const rows = await kit.sql(
          "ganglion_owner",
          "SELECT pid FROM pg_stat_activity WHERE pid <> pg_backend_pid()",
        );
        const pids = [kit.postgres.server.pid, ...rows.map(({ pid }) => pid as number)];
        for (const pid of pids) process.kill(pid, "SIGSTOP");
        await pause(OUTAGE_MS);
        for (const pid of pids) process.kill(pid, "SIGCONT");
      },
    ],
  ];
  for (const [name, outage] of outages) {
    it(`${name} for ${OUTAGE_MS / 1000} s costs nobody an event [A136]`, async () => {
      const addresses = [kit.service.listening.addr, second.listening.addr];
      const client = await kit.asClient("wrkspc_default", addresses);
      const { create } = await makeFixture(client);
      const recorder = new Recorder((await create()).id);
      const seed = Number(process.env.SEED ?? randomInt(2 ** 31));
      const over = new AbortController();
      const whole = Promise.withResolvers<number>();
      const stage = (actor: string, caller: Caller): Stage => ({
        name: `${name}_${actor}`,
        recorder,
        caller,
        random: new Random(seed, actor),
        over: over.signal,
        isStubborn: true,
      });
      const callers = await Promise.all([0, 1, 2, 3].map(() => kit.asClient("wrkspc_default", addresses)));
      const appending = callers.map((caller, n) => appender(stage(`a${n}`, caller)));
      const watching = callers.map((caller, n) => watcher(stage(`w${n}`, caller), whole.promise));
      const all = Promise.all([...appending, ...watching]);
      all.catch(() => over.abort());

      await pause(500);
      const before = performance.now();
      await outage();
      const after = performance.now();
      const isBack = ({ begun, outcome }: Attempt) => begun > after && outcome.kind === "acknowledged";
      await Promise.race([recorder.attempted(isBack), all]);
      await pause(500);
      over.abort();
      await Promise.all(appending);
      const log = await readStored(client, recorder.sessionId);
      whole.resolve(log.length);
      await all;
      assert.deepEqual(checkHistory({ ...recorder, log }).slice(0, 10), [], `seed ${seed}`);
      const settled = new Set(
        recorder.attempts.flatMap(({ ids, outcome }) => (outcome.kind === "ambiguous" ? [] : ids)),
      );
      assert.ok(recorder.attempts.every(({ ids }) => ids.every((id) => settled.has(id))));
      const during = recorder.attempts.filter(({ begun, ended }) => begun > before && ended < after);
      assert.ok(
        during.some(({ outcome }) => outcome.kind === "ambiguous"),
        "nobody noticed",
      );
      assert.equal(kit.service.process.exitCode, null);
      assert.equal(second.process.exitCode, null);
    });
  }
});
