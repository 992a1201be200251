import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { setTimeout as wait } from "node:timers/promises";
import { checkLog } from "../../kit/check-log.ts";
import type { CrashAction } from "../../kit/crash/armed-messages.ts";
import { CrashMesh } from "../../kit/crash/crash-mesh.ts";
import type { CrashWorld } from "../../kit/crash/crash-world.ts";
import { checkEffects } from "./check-effects.ts";
import { furnish } from "./furnish.ts";
import { Player } from "./player.ts";
import { type Scenario, WordList } from "./scenarios.ts";

const END_TURN = 1;
/** Longer than the time between two heartbeats of any process. */
const BACKGROUND_MS = 3_500;

/** One process dies at one point of one session. */
export interface Crash {
  readonly point: string;
  readonly action: CrashAction;
  readonly scenario: Scenario;
}

/** The stage of a crash. */
export interface CrashStage {
  readonly mesh: CrashMesh;
  readonly world: CrashWorld;
  readonly player: Player;
}

/** Starts a mesh and makes what its sessions need. */
export async function setStage(world: CrashWorld): Promise<CrashStage> {
  const mesh = await CrashMesh.start(world);
  try {
    return { mesh, world, player: new Player(mesh, await furnish(mesh, world)) };
  } catch (error) {
    await mesh.stop();
    throw error;
  }
}

/** Ends a stage. */
export async function strike({ mesh, player }: CrashStage): Promise<void> {
  player.close();
  await mesh.stop();
}

/** NotReached says that nobody came by the point. */
export class NotReached extends Error {
  override name = "NotReached";
}

/** crashOnce plays a session in which somebody dies, lets the mesh recover by itself, and checks what must hold. */
export async function crashOnce({ mesh, world, player }: CrashStage, crash: Crash): Promise<void> {
  const { point, action, scenario } = crash;
  await mesh.whole();
  const instances = mesh.instancesOf(point);
  let isHit = false;
  const hitting = Promise.withResolvers<void>();
  const disarming: Promise<void>[] = [];
  const onHit = (name: string) => {
    if (isHit) return;
    isHit = true;
    hitting.resolve();
    const others = instances.filter(({ spec }) => spec.name !== name);
    disarming.push(...others.map((other) => other.disarm()));
  };
  let sessionId = "";
  try {
    await Promise.all(instances.map((one) => one.arm(point, action, () => onHit(one.spec.name))));
    const words = new WordList(`w${randomBytes(6).toString("hex")}`);
    sessionId = await player.newSession(scenario.agent);
    await scenario.play(player, sessionId, words);
    if (!isHit) await player.released(sessionId);
    // What is done every few seconds may not have been done meanwhile.
    if (!isHit) await Promise.race([hitting.promise, wait(BACKGROUND_MS)]);
    await mesh.whole();
    if (!isHit) throw new NotReached(`${scenario.name} did not come by ${point}`);
    await checkSession({ mesh, world, player }, sessionId, words);
  } catch (error) {
    if (error instanceof NotReached) throw error;
    const types = await player.log(sessionId).then(describe, (cause: Error) => `no log: ${cause.message}`);
    throw new Error(
      `${action} at ${point} in ${scenario.name}, ${sessionId}: ${(error as Error).message}\n${types}`,
      {
        cause: error,
      },
    );
  } finally {
    await Promise.all(isHit ? disarming : instances.map((one) => one.disarm()));
  }
}

/** What must hold of a session whatever died: it takes another turn, its log is whole, and nothing was done twice. */
export async function checkSession(
  { mesh, world, player }: CrashStage,
  sessionId: string,
  words: WordList,
): Promise<void> {
  const idle = await player.turn(sessionId, "scenario: plain words=4");
  const reason = idle.body?.$case === "sessionStatusIdle" ? idle.body.value.stopReason?.type : undefined;
  assert.equal(reason, END_TURN, "the next turn ends well");
  const events = await player.log(sessionId);
  checkLog(events);
  if (words.words.length === 0) return;
  mesh.counters.collect();
  const remote = await world.mcp.counts();
  checkEffects(events, words.words, (word) => mesh.counters.count(word) + (remote[word] ?? 0));
}

function describe(events: Awaited<ReturnType<Player["log"]>>): string {
  return events.map(({ position, epoch, type }) => `${position}/${epoch} ${type}`).join("\n");
}
