import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import type { CrashAction } from "../../kit/crash/armed-messages.ts";
import { type CrashWorld, startCrashWorld } from "../../kit/crash/crash-world.ts";
import { listPoints } from "../../kit/crash/list-points.ts";
import { type CrashStage, checkSession, crashOnce, NotReached, setStage, strike } from "./crash-once.ts";
import { SCENARIOS, type Scenario, WordList } from "./scenarios.ts";
import { matches, UNREACHED } from "./unreached.ts";

const ACTIONS: readonly CrashAction[] = ["kill", "cut"];
/** Most of a run is waiting for deadlines: two meshes keep two processors busy. */
const STAGES = 2;
/** Whether a brain, a lease or a hint comes by is chance now and then. */
const TRIES = 3;
const isSoak = process.env.SOAK === "1";
const only = process.env.POINT?.split(",");

const points = await listPoints();
const byChance = (point: string) => UNREACHED.some((one) => one.isByChance && matches(one, point));
/** Without those that nobody comes by; one that is left and not reached fails in the checks of the list. */
const chosen = points.filter(
  (point) =>
    (only?.includes(point) ?? true) && !UNREACHED.some((one) => !one.isByChance && matches(one, point)),
);

describe("a process dies, or loses its network, at every point at which others can tell [L1, L2, L4]", function () {
  this.timeout(isSoak ? 0 : 300_000);
  let world: CrashWorld;
  let stages: CrashStage[] = [];
  let isOver = false;
  /** The canonical sessions that come by a point, the cheapest first. */
  const reaching = new Map<string, Scenario[]>();
  const results = new Map(chosen.map((point) => [point, Promise.withResolvers<void>()]));

  before(async function () {
    this.timeout(240_000);
    world = await startCrashWorld();
    stages = await Promise.all(
      Array.from({ length: Math.min(STAGES, chosen.length || 1) }, () => setStage(world)),
    );
    await discover(stages[0] as CrashStage);
    const queue = chosen.values();
    for (const stage of stages) void work(stage, queue);
  });
  after(async function () {
    this.timeout(60_000);
    isOver = true;
    await Promise.all(stages.map(strike));
    await world?.stop();
  });

  it("every point that a session came by is in the list made from the code", () => {
    assert.deepEqual(
      [...reaching.keys()].filter((point) => !points.includes(point)),
      [],
    );
  });

  it("every point is come by, or it is written down why not", () => {
    const forgotten = points.filter(
      (point) => !reaching.has(point) && !UNREACHED.some((entry) => matches(entry, point)),
    );
    assert.deepEqual(forgotten, []);
  });

  it("nothing is written down that is come by, or that does not exist", () => {
    const wrong = UNREACHED.filter((entry) => {
      const meant = points.filter((point) => matches(entry, point));
      return meant.length === 0 || (!entry.isByChance && meant.some((point) => reaching.has(point)));
    });
    assert.deepEqual(wrong, []);
  });

  for (const point of chosen) it(point, () => results.get(point)?.promise);

  /** Plays all canonical sessions undisturbed, and notes who comes by where. */
  async function discover(stage: CrashStage): Promise<void> {
    await stage.mesh.seen();
    for (const scenario of SCENARIOS) {
      const words = new WordList(`d${SCENARIOS.indexOf(scenario)}`);
      const sessionId = await stage.player.newSession(scenario.agent);
      await scenario.play(stage.player, sessionId, words);
      await stage.player.released(sessionId);
      await stage.mesh.whole();
      for (const point of await stage.mesh.seen())
        reaching.set(point, [...(reaching.get(point) ?? []), scenario]);
      await checkSession(stage, sessionId, words);
      await stage.mesh.seen();
    }
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
    const scenarios = (reaching.get(point) ?? []).filter(
      ({ name }) => (process.env.SCENARIO ?? name) === name,
    );
    const actions = process.env.ACTION
      ? ACTIONS.filter((action) => action === process.env.ACTION)
      : undefined;
    for (const scenario of isSoak ? scenarios : scenarios.slice(0, 1)) {
      for (const action of actions ?? (isSoak ? ACTIONS : [actionOf(point)]))
        await insist(point, () => crashOnce(stage, { point, action, scenario, hit: 1 }));
    }
  }
});

/** One of the two for each point, always the same one. */
function actionOf(point: string): CrashAction {
  return ACTIONS[(createHash("sha256").update(point).digest()[0] ?? 0) & 1] as CrashAction;
}

/** Tries again when nobody came by: no check has run then. */
async function insist(point: string, crash: () => Promise<void>): Promise<void> {
  for (let tries = 1; ; tries++) {
    try {
      return await crash();
    } catch (error) {
      if (!(error instanceof NotReached)) throw error;
      if (byChance(point)) return;
      if (tries === TRIES) throw error;
    }
  }
}
