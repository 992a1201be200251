import type { Fault, History, Read, Seen, Stored, Watched } from "./history.ts";

/** checkViews holds what readers and watchers saw against the log: one order for all, nothing missed or told twice. */
export function checkViews(history: History): Fault[] {
  const { log, reads, watched } = history;
  return [
    ...reads.flatMap((read) => checkRead(read, log)),
    ...checkFreshness(history),
    ...watched.flatMap((one) => checkWatcher(one, log)),
  ];
}

function checkRead(read: Read, log: readonly Stored[]): Fault[] {
  const last = Math.min(read.before === 0 ? read.head : read.before - 1, read.head);
  const selected = log.slice(read.after, Math.max(read.after, last));
  const wanted = read.isDescending ? selected.toReversed() : selected;
  const faults = read.events.flatMap((seen, index): Fault[] => {
    const expected = wanted[index];
    return expected && isSame(expected, seen)
      ? []
      : [{ kind: "wrong slice", detail: `${describe(seen)} where ${describe(expected)} belongs` }];
  });
  if (!read.hasMore && read.events.length < wanted.length) {
    faults.push({
      kind: "wrong slice",
      detail: `${read.events.length} of ${wanted.length} events, and no more`,
    });
  }
  return faults;
}

// Whoever reads after an acknowledgement sees what was acknowledged.
function checkFreshness({ attempts, reads }: History): Fault[] {
  const acknowledged = attempts
    .flatMap(({ outcome, ended }) => (outcome.kind === "acknowledged" ? [{ outcome, ended }] : []))
    .sort((a, b) => a.ended - b.ended);
  const faults: Fault[] = [];
  let next = 0;
  let known = 0;
  for (const read of [...reads].sort((a, b) => a.begun - b.begun)) {
    for (let one = acknowledged[next]; one && one.ended < read.begun; one = acknowledged[++next]) {
      known = Math.max(known, ...one.outcome.stored.map(({ position }) => position));
    }
    if (read.head < known) {
      faults.push({
        kind: "stale read",
        detail: `the head was read as ${read.head} when ${known} was acknowledged`,
      });
    }
  }
  return faults;
}

function checkWatcher({ name, after, events }: Watched, log: readonly Stored[]): Fault[] {
  const faults: Fault[] = [];
  let last = after;
  for (const seen of events) {
    const at = `${name} was sent ${describe(seen)} after ${last}`;
    if (seen.position === last) faults.push({ kind: "duplicated", detail: at });
    else if (seen.position < last) faults.push({ kind: "reordered", detail: at });
    else if (seen.position > last + 1) faults.push({ kind: "lost", detail: at });
    const stored = log[seen.position - 1];
    if (!stored || !isSame(stored, seen)) {
      faults.push({ kind: "phantom", detail: `${at}; the log has ${describe(stored)} there` });
    }
    last = Math.max(last, seen.position);
  }
  if (last < log.length) faults.push({ kind: "lost", detail: `${name} was never sent what follows ${last}` });
  return faults;
}

function isSame(one: Seen, other: Seen): boolean {
  return one.position === other.position && one.id === other.id;
}

function describe(seen: Seen | undefined): string {
  return seen ? `${seen.id} at ${seen.position}` : "nothing";
}
