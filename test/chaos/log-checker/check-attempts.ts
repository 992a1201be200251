import type { Attempt, Fault, History } from "./history.ts";

/** When an event was appended, as far as its attempts tell: within [from, until]. */
interface Window {
  from: number;
  until: number;
}

/** checkAttempts holds the log against what the appenders were told, and in which order in time. */
export function checkAttempts(history: History): Fault[] {
  const at = new Map(history.log.map(({ id, position }) => [id, position]));
  const windows = windowsOf(history.attempts);
  return [
    ...history.attempts.flatMap((attempt) => checkOutcome(attempt, at)),
    ...checkWhole(history.attempts, at),
    ...checkTime(history, windows),
    ...checkExpectations(history, windows),
    ...checkFence(history),
  ];
}

// Acknowledged: present where it was said. Refused: absent, whatever other attempts of it came to.
function checkOutcome({ outcome, ids }: Attempt, at: ReadonlyMap<string, number>): Fault[] {
  if (outcome.kind === "refused") {
    return ids
      .filter((id) => at.has(id))
      .map((id) => ({
        kind: "phantom",
        detail: `${id} was refused (${outcome.reason}) and is at ${at.get(id)}`,
      }));
  }
  if (outcome.kind === "ambiguous") return [];
  return outcome.stored.flatMap(({ id, position }): Fault[] => {
    const found = at.get(id);
    if (found === undefined) return [{ kind: "lost", detail: `${id} was acknowledged at ${position}` }];
    if (found === position) return [];
    return [{ kind: "moved", detail: `${id} was acknowledged at ${position} and is at ${found}` }];
  });
}

// All events of an attempt or none, side by side in their order.
function checkWhole(attempts: readonly Attempt[], at: ReadonlyMap<string, number>): Fault[] {
  return attempts.flatMap(({ ids }): Fault[] => {
    const positions = ids.map((id) => at.get(id));
    const [first] = positions;
    const isNone = positions.every((position) => position === undefined);
    const isWhole = positions.every((position, index) => first !== undefined && position === first + index);
    return isNone || isWhole ? [] : [{ kind: "torn", detail: `${ids.join(", ")}: ${positions.join(", ")}` }];
  });
}

function windowsOf(attempts: readonly Attempt[]): Map<string, Window> {
  const windows = new Map<string, Window>();
  for (const { ids, begun, ended, outcome } of attempts) {
    for (const id of ids) {
      const window = windows.get(id) ?? { from: begun, until: Number.POSITIVE_INFINITY };
      window.from = Math.min(window.from, begun);
      if (outcome.kind === "acknowledged") window.until = Math.min(window.until, ended);
      windows.set(id, window);
    }
  }
  return windows;
}

// What was acknowledged before another append began has the lower position.
function checkTime({ log }: History, windows: ReadonlyMap<string, Window>): Fault[] {
  const faults: Fault[] = [];
  let latest = { id: "", from: Number.NEGATIVE_INFINITY };
  for (const { id } of log) {
    const window = windows.get(id);
    if (!window) continue;
    if (window.until < latest.from) {
      faults.push({
        kind: "reordered",
        detail: `${id} was there before ${latest.id} began, and comes after it`,
      });
    }
    if (window.from > latest.from) latest = { id, from: window.from };
  }
  return faults;
}

// An append that named a head was done at that head, and refused only if the log may have had another one meanwhile.
function checkExpectations({ attempts, log }: History, windows: ReadonlyMap<string, Window>): Fault[] {
  const at = new Map(log.map(({ id, position }) => [id, position]));
  const windowAt = (position: number): Window | undefined => {
    const event = log[position - 1];
    if (!event) return { from: Number.POSITIVE_INFINITY, until: Number.POSITIVE_INFINITY };
    return windows.get(event.id);
  };
  return attempts.flatMap(({ ids, expected, outcome, begun, ended }): Fault[] => {
    if (expected === undefined) return [];
    const first = at.get(ids[0] ?? "");
    if (first !== undefined && first !== expected + 1) {
      return [
        { kind: "unjustified append", detail: `${ids[0]} wanted the head at ${expected} and is at ${first}` },
      ];
    }
    if (outcome.kind !== "refused" || outcome.reason !== "POSITION_CONFLICT") return [];
    const [own, next] = [windowAt(expected), windowAt(expected + 1)];
    // Where one of the two is the log's own event nobody knows when it came.
    if (!own || !next) return [];
    const wasHeadThroughout = own.until < begun && next.from > ended;
    return wasHeadThroughout
      ? [{ kind: "unjustified refusal", detail: `${ids[0]} found the head that it wanted: ${expected}` }]
      : [];
  });
}

// Once a lease was taken, nothing of an older epoch that begins later is appended; epochs never go back.
function checkFence({ attempts, taken, log }: History): Fault[] {
  const faults: Fault[] = [];
  let highest = 0;
  for (const { epoch, id, position } of log) {
    if (epoch === 0) continue;
    if (epoch < highest) {
      faults.push({
        kind: "fence broken",
        detail: `${id} at ${position} is of epoch ${epoch}, after ${highest}`,
      });
    }
    highest = Math.max(highest, epoch);
  }
  for (const { epoch, outcome, begun, ids } of attempts) {
    if (epoch === undefined || outcome.kind !== "acknowledged") continue;
    const later = taken.find((lease) => lease.epoch > epoch && lease.ended < begun);
    if (later) {
      faults.push({
        kind: "fence broken",
        detail: `${ids[0]} of epoch ${epoch} was taken after ${later.epoch} began`,
      });
    }
  }
  return faults;
}
