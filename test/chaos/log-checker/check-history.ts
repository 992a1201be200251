import { checkAttempts } from "./check-attempts.ts";
import { checkViews } from "./check-views.ts";
import type { Fault, History } from "./history.ts";

/** checkHistory finds everything in a history that an append-only log must never do; empty = nothing. */
export function checkHistory(history: History): Fault[] {
  return [...checkLog(history), ...checkAttempts(history), ...checkViews(history)];
}

// Dense positions, each id once, nothing that nobody appended.
function checkLog({ log, attempts }: History): Fault[] {
  const faults: Fault[] = [];
  const offered = new Set(attempts.flatMap(({ ids }) => ids));
  const seen = new Map<string, number>();
  log.forEach(({ position, id, isOwn }, index) => {
    if (position !== index + 1)
      faults.push({ kind: "gap", detail: `${id} is at ${position}, not ${index + 1}` });
    const first = seen.get(id);
    if (first !== undefined)
      faults.push({ kind: "duplicated", detail: `${id} is at ${first} and ${position}` });
    seen.set(id, position);
    if (!isOwn && !offered.has(id)) faults.push({ kind: "phantom", detail: `nobody appended ${id}` });
  });
  return faults;
}
