import assert from "node:assert/strict";
import { randomInt } from "node:crypto";
import { Random } from "../../kit/random.ts";
import { readLog } from "../../kit/read-log.ts";
import { PARTS } from "../../kit/stage.ts";
import { Field } from "./field.ts";
import { HandEffects } from "./hand-effects.ts";
import { Job } from "./job.ts";
import { Killer } from "./killer.ts";
import { persistently } from "./persistent.ts";
import { emptyTally, tallyJob, tallyPhantoms } from "./tally.ts";

const isSoak = process.env.SOAK === "1";
/** SESSIONS, TURNS and SEED of the shell choose another run than the usual one. */
const number = (name: string, usual: number) => Number(process.env[name] ?? usual);
const SESSIONS = number("SESSIONS", isSoak ? 1_000 : 50);
const TURNS = number("TURNS", isSoak ? 10 : 3);
const SEED = number("SEED", randomInt(2 ** 31));
/** A hand is a jail with a Node process of its own: the machine holds some dozens beside the mesh. */
const HANDS = number("HANDS", isSoak ? 40 : 25);
const KILLS = isSoak ? { minMs: 2_000, maxMs: 6_000 } : { minMs: 1_500, maxMs: 4_000 };
const PROGRESS_MS = 60_000;
const LIMIT_MS = isSoak ? 3 * 3_600_000 : 240_000;

describe(`${SESSIONS} sessions of ${TURNS} turns, while random parts are killed`, function () {
  this.timeout(LIMIT_MS + 120_000);
  let field: Field;

  before(async () => {
    field = await Field.start();
  });
  after(() => field?.stop());

  it(`nothing is lost, nothing is done twice, and all finish (SEED=${SEED}) [B135, B152]`, async () => {
    const random = new Random(SEED, "kills");
    const signal = AbortSignal.timeout(LIMIT_MS);
    const every = Math.max(1, Math.floor(SESSIONS / HANDS));
    const jobs = Array.from({ length: SESSIONS }, (_, n) => {
      const usesHand = n % every === 0 && n / every < HANDS;
      return new Job({ field, n, usesHand, random: new Random(SEED, `s${n}`), signal });
    });
    const effects = new HandEffects(field.mesh);
    const seesHands = effects.start();
    const killer = new Killer(field.mesh, random, KILLS);
    const killing = killer.run();
    const begun = performance.now();
    const progress = setInterval(() => {
      const turns = jobs.reduce((sum, { turnsDone }) => sum + turnsDone, 0);
      const minutes = ((performance.now() - begun) / 60_000).toFixed(0);
      console.error(`${turns} of ${SESSIONS * TURNS} turns and ${killer.total} kills after ${minutes} min`);
    }, PROGRESS_MS);
    let seconds = 0;
    try {
      await Promise.all(jobs.map((job) => job.run(TURNS)));
      seconds = (performance.now() - begun) / 1000;
    } catch (error) {
      const done = jobs.filter(({ turnsDone }) => turnsDone === TURNS).length;
      console.log(`${done} of ${SESSIONS} jobs were done; kills: ${JSON.stringify(killer.kills)}`);
      throw error;
    } finally {
      clearInterval(progress);
      killer.stop();
      await killing;
    }
    await Promise.all(PARTS.map((part) => field.mesh.ready(part)));

    const tally = emptyTally();
    const world = { counts: await field.counter.counts(), handsOf: (key: string) => effects.handsOf(key) };
    const asked = new Set<string>();
    for (const [n, job] of jobs.entries()) {
      const client = field.client(n);
      const events = await readLog(job.sessionId, (request) =>
        persistently(
          () => client.getEvents(request),
          signal,
          () => {},
        ),
      );
      tallyJob(tally, job, events, world);
      for (const { body } of events)
        if (body?.$case === "agentMcpToolUse")
          asked.add(JSON.parse(Buffer.from(body.value.inputJson).toString()).key);
    }
    tallyPhantoms(tally, asked, world);
    effects.stop();

    const turns = jobs.reduce((sum, { turnsDone }) => sum + turnsDone, 0);
    const figures: [string, number, string][] = [
      ["sessions", SESSIONS, "sessions"],
      ["turns", turns, "turns"],
      ["kills", killer.total, "kills"],
      ...Object.entries(killer.kills).map(([part, count]): [string, number, string] => [
        `kills_${part}`,
        count,
        "kills",
      ]),
      ["lost", tally.lost.length, "cases"],
      ["duplicated", tally.duplicated.length, "cases"],
      ["events", tally.events, "events"],
      ["calls_completed", tally.completed, "calls"],
      ["calls_unknown", tally.unknown, "calls"],
      ["calls_not_run", tally.notRun, "calls"],
      ["calls_hand_died", tally.handDied, "calls"],
      ["client_repeats", jobs.reduce((sum, { repeats }) => sum + repeats, 0), "calls"],
      ["wall_seconds", Number(seconds.toFixed(1)), "s"],
      ["turns_per_second", Number((turns / seconds).toFixed(2)), "1/s"],
    ];
    for (const [name, value, unit] of figures)
      console.log(
        JSON.stringify({ name: `under_kills_${name}`, value, unit, baseline: null, ratio: null, n: turns }),
      );
    if (!seesHands) console.log("hands' files belong to others: effects in two hands were not looked for");

    assert.equal(turns, SESSIONS * TURNS, "all finish");
    assert.deepEqual(tally.lost, [], "lost");
    assert.deepEqual(tally.duplicated, [], "duplicated");
    assert.ok(killer.total > 0, "somebody was killed");
    const calls = tally.completed + tally.unknown + tally.notRun + tally.handDied;
    assert.equal(calls, 3 * turns, "every call of every turn has one result");
    assert.ok(tally.completed > calls / 2, "most calls came to something");
  });
});
