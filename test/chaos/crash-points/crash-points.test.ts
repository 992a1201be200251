import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import type { CrashAction } from "../../kit/crash/armed-messages.ts";
import { type CrashWorld, startCrashWorld } from "../../kit/crash/crash-world.ts";
import { listPoints } from "../../kit/crash/list-points.ts";
import {
  type Crash,
  type CrashStage,
  checkSession,
  crashOnce,
  NotReached,
  setStage,
  strike,
} from "./crash-once.ts";
import { SCENARIOS, type Scenario, WordList } from "./scenarios.ts";
import { matches, UNREACHED } from "./unreached.ts";

const ACTIONS: readonly CrashAction[] = ["kill", "cut"];
/** Most of a run is waiting for deadlines: two meshes keep two processors busy. */
const STAGES = 2;
/** Whether somebody comes by is chance now and then, also where it is nearly sure. */
const TRIES = 3;
const isSoak = process.env.SOAK === "1";
const only = process.env.POINT?.split(",");

const points = await listPoints();
const entryOf = (point: string) => UNREACHED.find((entry) => matches(entry, point));
const wanted = points.filter((point) => only?.includes(point) ?? true);
/** Where somebody has to die; one of them that no session comes by fails. */
const certain = wanted.filter((point) => !entryOf(point) || entryOf(point)?.surelyIn);
/** Where somebody dies when a session happens to come by. */
const byChance = wanted.filter((point) => entryOf(point)?.isByChance);

describe("a process dies, or loses its network, at every point at which others can tell [L1, L2, L4]", function () {
  this.timeout(isSoak ? 0 : 300_000);
  let world: CrashWorld;
  let stages: CrashStage[] = [];
  let isOver = false;
  /** The canonical sessions that come by a point, the cheapest first. */
  const reaching = new Map<string, Set<Scenario>>();
  const results = new Map([...certain, ...byChance].map((point) => [point, Promise.withResolvers<void>()]));
  /** How often it was done, all sessions together. */
  const done = { kill: 0, cut: 0 };
  /** Where a session came by undisturbed, and not when somebody was to die there. */
  const missed: Crash[] = [];
  const struck = new Set<string>();

  before(async function () {
    this.timeout(240_000);
    world = await startCrashWorld();
    stages = await Promise.all(
      Array.from({ length: Math.min(STAGES, results.size || 1) }, () => setStage(world)),
    );
    await discover(stages[0] as CrashStage);
    const queue = results.keys();
    for (const stage of stages) void work(stage, queue);
  });
  after(async function () {
    this.timeout(60_000);
    isOver = true;
    await Promise.all(stages.map(strike));
    await world?.stop();
    console.log(
      `${points.length} points: ${certain.length} for certain, ${byChance.length} by chance, the rest by nobody; ` +
        `somebody died ${done.kill} times and lost the network ${done.cut} times`,
    );
    for (const { action, point, scenario } of missed)
      console.log(`not come by again: ${action} at ${point} in ${scenario.name}`);
  });

  it("every point that a session came by is in the list made from the code", () => {
    assert.deepEqual(
      [...reaching.keys()].filter((point) => !points.includes(point)),
      [],
    );
  });

  it("every point is come by, or it is written down why not", () => {
    const forgotten = points.filter((point) => {
      const entry = entryOf(point);
      return entry ? entry.surelyIn && !comesBy(entry.surelyIn, point) : !reaching.has(point);
    });
    assert.deepEqual(forgotten, []);
  });

  it("nothing is written down that is come by, or that does not exist", () => {
    const wrong = UNREACHED.filter((entry) => {
      const meant = points.filter((point) => matches(entry, point));
      const isChance = entry.isByChance ?? entry.surelyIn;
      return meant.length === 0 || (!isChance && meant.some((point) => reaching.has(point)));
    });
    assert.deepEqual(wrong, []);
  });

  for (const point of certain) {
    it(point, async () => {
      await results.get(point)?.promise;
      assert.ok(struck.has(point), "nobody came by");
    });
  }

  it("so does who comes by one of the others by chance", async () => {
    await Promise.all(byChance.map((point) => results.get(point)?.promise));
    const hit = byChance.filter((point) => struck.has(point));
    console.log(`${hit.length} of ${byChance.length} points were come by by chance: ${hit.join(", ")}`);
  });

  function comesBy(name: string, point: string): boolean {
    return [...(reaching.get(point) ?? [])].some((scenario) => scenario.name === name);
  }

  /** Plays all canonical sessions undisturbed, and notes who comes by where. */
  async function discover(stage: CrashStage): Promise<void> {
    for (const scenario of SCENARIOS) {
      const sure = points.filter((point) => entryOf(point)?.surelyIn === scenario.name);
      await record(stage, scenario);
      for (let tries = 1; tries < TRIES && !sure.every((point) => comesBy(scenario.name, point)); tries++)
        await record(stage, scenario);
    }
  }

  async function record(stage: CrashStage, scenario: Scenario): Promise<void> {
    await stage.mesh.seen();
    const words = new WordList(`d${randomBytes(6).toString("hex")}`);
    const sessionId = await stage.player.newSession(scenario.agent);
    await scenario.play(stage.player, sessionId, words);
    await stage.player.released(sessionId);
    await stage.mesh.whole();
    for (const point of await stage.mesh.seen())
      reaching.set(point, (reaching.get(point) ?? new Set()).add(scenario));
    await checkSession(stage, sessionId, words);
  }

  async function work(stage: CrashStage, queue: Iterator<string> & Iterable<string>): Promise<void> {
    for (const point of queue) {
      const result = results.get(point);
      // Its test may not have begun to wait.
      result?.promise.catch(() => {});
      if (isOver) return;
      await crashAt(stage, point).then(result?.resolve, result?.reject);
    }
  }

  /** In `make test` one way in the cheapest session, in `make soak` both ways in all that come by. */
  async function crashAt(stage: CrashStage, point: string): Promise<void> {
    const sure = entryOf(point)?.surelyIn;
    const scenarios = [...(reaching.get(point) ?? [])].filter(
      ({ name }) => (process.env.SCENARIO ?? (isSoak ? name : (sure ?? name))) === name,
    );
    const actions = process.env.ACTION
      ? ACTIONS.filter((action) => action === process.env.ACTION)
      : undefined;
    for (const action of actions ?? (isSoak ? ACTIONS : [actionOf(point)])) {
      let isStruck = false;
      for (const scenario of isSoak ? scenarios : scenarios.slice(0, 1))
        isStruck = (await insist(stage, { point, action, scenario })) || isStruck;
      if (!isStruck && !entryOf(point)?.isByChance)
        throw new NotReached(`nobody came by ${point} for a ${action}`);
    }
  }

  /** Tries again when nobody came by: no check has run then. False when nobody did. */
  async function insist(stage: CrashStage, crash: Crash): Promise<boolean> {
    const { point, action, scenario } = crash;
    const { isByChance, surelyIn = scenario.name } = entryOf(point) ?? {};
    for (let tries = 1; ; tries++) {
      try {
        await crashOnce(stage, crash);
        struck.add(point);
        done[action] += 1;
        return true;
      } catch (error) {
        if (!(error instanceof NotReached)) throw error;
        if (isByChance || surelyIn !== scenario.name) return false;
        if (tries === TRIES) {
          missed.push(crash);
          return false;
        }
      }
    }
  }
});

/** One of the two for each point, always the same one. */
function actionOf(point: string): CrashAction {
  return ACTIONS[(createHash("sha256").update(point).digest()[0] ?? 0) & 1] as CrashAction;
}
