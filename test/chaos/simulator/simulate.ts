import { checkRun } from "./checks/check-run.ts";
import { intercepted, nextDay } from "./core/intercept.ts";
import { heal, lieInWait, unleash } from "./parts/faults.ts";
import type { Mutation } from "./parts/mutations.ts";
import { LAST_WORDS } from "./parts/scripted-mind.ts";
import { World } from "./parts/world.ts";

/** How a run ended. */
export interface Outcome {
  seed: number;
  /** What was wrong; empty when all held. */
  faults: string[];
  traceHash: string;
  trace: readonly string[];
  world: World;
}

/** After the bad times everything must come to rest within this. */
const REST_MS = 600_000;

/** Runs one seed: bad times, healing, one more turn, and all the checks. */
export function simulate(seed: number, mutation?: Mutation): Promise<Outcome> {
  return intercepted(async () => {
    nextDay();
    const world = new World(seed, mutation);
    const faults = await liveThrough(world).catch((error: unknown) => [
      `the simulation broke: ${stackOf(error)}`,
    ]);
    const { trace } = world;
    for (const fault of faults) trace.say(`FAULT ${fault}`);
    for (const part of [...world.brains, ...world.servers, ...world.sandboxes]) part.process.kill();
    return { seed, faults, traceHash: trace.hash(), trace: trace.lines, world };
  });
}

async function liveThrough(world: World): Promise<string[]> {
  const { time, users, observers, plan } = world;
  unleash(world);
  lieInWait(world);
  for (const user of users) user.live(plan.user);
  await time.runUntil(() => false, plan.chaosMs);
  time.at(plan.chaosMs, () => heal(world));
  for (const user of users) user.isPatient = true;
  const isAtRest = (): boolean =>
    observers.every((observer) => observer.isAtRest) && users.every(({ isDone }) => isDone);
  if (!(await time.runUntil(isAtRest, plan.chaosMs + REST_MS))) return ["the mesh does not come to rest"];
  world.trace.say("at rest; last words");
  for (const user of users) void user.say(LAST_WORDS);
  if (!(await time.runUntil(isAtRest, time.now + REST_MS))) return ["the last words are not answered"];
  return checkRun(world);
}

function stackOf(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}
