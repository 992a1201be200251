import { AsyncLocalStorage } from "node:async_hooks";
import { Random } from "../../../kit/random.ts";
import { EventHeap, type HeapEntry } from "./event-heap.ts";

/** The simulated process on whose behalf code runs now; undefined outside of a simulation. */
export const currentProcess = new AsyncLocalStorage<SimProcess>();

// Kept before anybody replaces it.
const realImmediate = setImmediate;

/** One operating system process of the simulated world. Killed, its timers and messages are gone; paused, they wait. */
export class SimProcess {
  readonly name: string;
  readonly time: VirtualTime;
  /** Its wall clock is that many milliseconds off. */
  readonly skewMs: number;
  /** How fast its monotonic clock runs against the world's. */
  readonly rate: number;
  readonly bornAt: number;
  readonly random: Random;
  isAlive = true;
  isPaused = false;
  readonly #waiting: (() => void)[] = [];
  readonly #onDeath = new Set<() => void>();

  constructor(time: VirtualTime, name: string, clock: { skewMs?: number; rate?: number } = {}) {
    this.time = time;
    this.name = name;
    this.skewMs = clock.skewMs ?? 0;
    this.rate = clock.rate ?? 1;
    this.bornAt = time.now;
    this.random = new Random(time.seed, `${name} ${time.now}`);
  }

  /** Runs code as this process: now, when it is paused once it goes on, when it is dead never. */
  deliver(run: () => void): void {
    if (!this.isAlive) return;
    if (this.isPaused) this.#waiting.push(run);
    else currentProcess.run(this, run);
  }

  pause(): void {
    this.isPaused = true;
  }

  /** Everything that came meanwhile comes now, in the order in which it came. */
  resume(): void {
    this.isPaused = false;
    for (const run of this.#waiting.splice(0)) this.time.at(this.time.now, () => this.deliver(run));
  }

  /** SIGKILL: nothing of it runs any more. */
  kill(): void {
    if (!this.isAlive) return;
    this.isAlive = false;
    this.#waiting.length = 0;
    for (const hear of [...this.#onDeath]) hear();
  }

  /** Calls back when the process dies, until the returned function is called. */
  onDeath(hear: () => void): () => void {
    this.#onDeath.add(hear);
    return () => this.#onDeath.delete(hear);
  }

  /** Milliseconds of its monotonic clock. */
  monotonic(): number {
    this.time.count(this.name);
    return (this.time.now - this.bornAt) * this.rate;
  }

  /** A timer of this process. */
  timer(delayMs: number, run: () => void): SimTimer {
    const delay = Math.min(Math.max(1, delayMs || 0), 2 ** 31) / this.rate;
    const entry = this.time.at(this.time.now + delay, () => this.deliver(() => !entry.isOff && run()));
    return new SimTimer(entry);
  }
}

/** What setTimeout gives. */
export class SimTimer {
  entry: HeapEntry;

  constructor(entry: HeapEntry) {
    this.entry = entry;
  }

  clear(): void {
    this.entry.isOff = true;
  }

  unref(): this {
    return this;
  }

  ref(): this {
    return this;
  }
}

/** Deeds of all processes together between two events; the busiest moments have some hundreds. */
const MOST_DEEDS = 20_000;

/** The world's clock. Time passes only from one event to the next, and only when nothing is left to do in between. */
export class VirtualTime {
  readonly seed: number;
  now = 0;
  steps = 0;
  readonly #heap = new EventHeap();
  #countedStep = 0;
  #counted = 0;

  constructor(seed: number) {
    this.seed = seed;
  }

  /**
   * Counts something that a process does. Whoever does it without end and without a pause stops the world, and nothing
   * can stop him in turn: then the run says so and ends with this whole process.
   */
  count(what: string): void {
    if (this.#countedStep !== this.steps) this.#counted = 0;
    this.#countedStep = this.steps;
    this.#counted += 1;
    if (this.#counted < MOST_DEEDS) return;
    console.error(`SEED=${this.seed}: without end and without a pause: ${what}`);
    process.exit(70);
  }

  /** Does something at a point in time; what was asked for first happens first. */
  at(time: number, run: () => void): HeapEntry {
    return this.#heap.push(Math.max(time, this.now), run);
  }

  /** Lets time pass until the condition holds or the point in time is reached; false = it was reached. */
  async runUntil(condition: () => boolean, deadline: number): Promise<boolean> {
    await drained(0);
    while (!condition()) {
      if (this.#heap.nextTime > deadline) return false;
      const next = this.#heap.pop();
      if (!next || next.isOff) continue;
      this.now = next.time;
      this.steps++;
      next.run();
      await drained(this.steps);
    }
    return true;
  }
}

/** After so many events the real event loop has its turn, so that nothing else in this process starves. */
const BREATH = 256;

// A tick that is asked for by a microtask comes when no microtask is left, and so does an immediate. Nothing in a
// simulation waits for anything else: there is no input and no output.
function drained(step: number): Promise<void> {
  return new Promise((resolve) => {
    if (step % BREATH === 0) realImmediate(resolve);
    else process.nextTick(resolve);
  });
}
