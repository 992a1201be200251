import type { Random } from "../../../kit/random.ts";
import type { BrainTimes } from "./brain.ts";
import type { UserPlan } from "./user.ts";

/** What a seed makes of a run. */
export interface Plan {
  brains: number;
  replicas: number;
  sandboxes: number;
  sessions: number;
  /** How long the bad times last. */
  chaosMs: number;
  /** Faults during that time. */
  faults: number;
  /** Faults that wait for calls to be open and hit whoever runs them. */
  ambushes: number;
  weather: { loss: number; duplicate: number; slow: number; slowMs: number };
  mood: { failure: number; toolMs: number };
  times: BrainTimes;
  ttlMs: number;
  user: UserPlan;
}

/** Draws a plan. Some runs are calm, some lose one message in ten, and each fault is rare in some and common in others. */
export function draw(random: Random): Plan {
  const isCalm = random.chance(0.08);
  return {
    brains: random.integer(2, 4),
    // Of the session service.
    replicas: random.integer(1, 2),
    sandboxes: random.integer(1, 2),
    sessions: random.integer(1, 2),
    chaosMs: random.between(4000, 16_000),
    faults: isCalm ? 0 : random.integer(2, 9),
    ambushes: isCalm ? 0 : random.integer(0, 3),
    weather: {
      loss: isCalm ? 0 : random.pick([0, 0.01, 0.04, 0.12]),
      duplicate: random.pick([0, 0.05, 0.2]),
      slow: random.pick([0, 0.05, 0.2]),
      slowMs: random.pick([100, 600, 2500]),
    },
    mood: { failure: isCalm ? 0 : random.pick([0, 0.1, 0.25]), toolMs: random.pick([50, 1500, 6000]) },
    times: {
      callMs: random.pick([3000, 10_000, 30_000]),
      lingerMs: random.pick([0, 2000, 20_000]),
      pollMs: random.pick([1500, 4000]),
    },
    ttlMs: random.pick([2000, 4000, 6000]),
    user: {
      messages: random.integer(1, 3),
      interrupts: random.pick([0, 0, 1, 2]),
      idleMs: random.between(500, 6000),
    },
  };
}
