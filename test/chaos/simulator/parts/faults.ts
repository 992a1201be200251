import type { Random } from "../../../kit/random.ts";
import type { Part, World } from "./world.ts";

const INTENTS = new Set(["agent.tool_use", "agent.mcp_tool_use"]);

type Fault = (world: World, random: Random) => void;

/** Lets the planned number of faults happen at random moments of the bad times. */
export function unleash(world: World): void {
  const random = world.random;
  const { faults, chaosMs } = world.plan;
  for (let i = 0; i < faults; i++) {
    const fault = random.pick(FAULTS);
    world.time.at(random.between(50, chaosMs), () => fault(world, random));
  }
}

/** Lets faults happen where they are most difficult: while the brain that holds the session waits for its calls. */
export function lieInWait(world: World): void {
  const { random, database, plan, time } = world;
  let left = plan.ambushes;
  database.listeners.push((row, from) => {
    const isIntent = row.events.slice(from).some(({ row: event }) => INTENTS.has(String(event.type)));
    if (!isIntent || left === 0 || time.now > plan.chaosMs) return;
    left -= 1;
    const inMs = random.next() * random.next() * plan.mood.toolMs;
    time.at(time.now + inMs, () => {
      if (time.now > plan.chaosMs) return;
      const holder = world.brains.find(({ name }) => row.owner?.endsWith(`/${name}`));
      const target = random.pick([holder, holder, ...world.sandboxes, ...world.sandboxes, ...world.servers]);
      if (!target) return;
      if (target === holder && random.chance(0.4)) pauseFor(world, target, random.pick([2000, 7000]));
      else killFor(world, target, random.pick([50, 1000, 9000]));
    });
  });
}

/** Ends all that is bad: links are whole, everybody runs. */
export function heal(world: World): void {
  world.trace.say("heal");
  world.network.heal();
  world.database.downUntil = 0;
  world.mind.mood.failure = 0;
  for (const part of partsOf(world)) {
    if (!part.process.isAlive) part.boot();
    else if (part.process.isPaused) part.process.resume();
  }
}

const FAULTS: readonly Fault[] = [
  // Brains are what it is about: they die, stop and go on most often.
  killBrain,
  killBrain,
  pauseSomebody,
  pauseSomebody,
  restartGently,
  killServer,
  killServer,
  killSandbox,
  cutLink,
  cutLink,
  loseHand,
  loseDatabase,
];

function killBrain(world: World, random: Random): void {
  killFor(world, random.pick(world.brains), random.between(10, 4000));
}

function killServer(world: World, random: Random): void {
  killFor(world, random.pick(world.servers), random.pick([50, 500, 3000, 9000]));
}

function killSandbox(world: World, random: Random): void {
  killFor(world, random.pick(world.sandboxes), random.pick([50, 1000, 20_000]));
}

function killFor(world: World, part: Part, ms: number): void {
  if (!part.process.isAlive) return;
  world.trace.say(`kill ${part.name} for ${ms.toFixed(0)}`);
  part.process.kill();
  world.time.at(world.time.now + ms, () => {
    if (!part.process.isAlive) part.boot();
  });
}

function pauseSomebody(world: World, random: Random): void {
  const part = random.chance(0.7) ? random.pick(world.brains) : random.pick(partsOf(world));
  pauseFor(world, part, random.pick([200, 2000, 7000, 12_000]));
}

function pauseFor(world: World, part: Part, ms: number): void {
  const { process } = part;
  if (!process.isAlive || process.isPaused) return;
  world.trace.say(`pause ${part.name} for ${ms}`);
  process.pause();
  world.time.at(world.time.now + ms, () => {
    if (!process.isPaused) return;
    world.trace.say(`resume ${part.name}`);
    process.resume();
  });
}

function restartGently(world: World, random: Random): void {
  const brain = random.pick(world.brains);
  const { process } = brain;
  if (!process.isAlive) return;
  world.trace.say(`stop ${brain.name}`);
  process.deliver(() => {
    brain.harness.close().then(() => {
      process.kill();
      world.time.at(world.time.now + 100, () => brain.boot());
    });
  });
}

function cutLink(world: World, random: Random): void {
  const from = random.pick(partsOf(world)).name;
  const to = random.pick([...world.servers, ...world.sandboxes]).name;
  const ms = random.pick([100, 1500, 6000, 15_000]);
  world.trace.say(`cut ${from} - ${to} for ${ms}`);
  world.network.cut(from, to, ms);
}

function loseHand(world: World, random: Random): void {
  const { host, name, process } = random.pick(world.sandboxes);
  const hand = random.pick([...host.driver.hands]);
  if (!hand) return;
  world.trace.say(`a hand of ${name} dies`);
  process.deliver(() => hand.die());
}

function loseDatabase(world: World, random: Random): void {
  const ms = random.pick([100, 1000, 5000]);
  world.trace.say(`database away for ${ms}`);
  world.database.downUntil = world.time.now + ms;
}

function partsOf({ brains, servers, sandboxes }: World): Part[] {
  return [...brains, ...servers, ...sandboxes];
}
