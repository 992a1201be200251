/** Something that happens at a point in time. */
export interface HeapEntry {
  readonly time: number;
  readonly order: number;
  readonly run: () => void;
  /** Set when it shall not happen. */
  isOff: boolean;
}

/** A queue by time; of equal times the first in comes first out. */
export class EventHeap {
  readonly #entries: HeapEntry[] = [];
  #order = 0;

  push(time: number, run: () => void): HeapEntry {
    const entry: HeapEntry = { time, order: this.#order++, run, isOff: false };
    const heap = this.#entries;
    let i = heap.push(entry) - 1;
    while (i > 0) {
      const parent = (i - 1) >> 1;
      if (isBefore(heap[parent]!, entry)) break;
      heap[i] = heap[parent]!;
      i = parent;
    }
    heap[i] = entry;
    return entry;
  }

  /** When the next one happens; Infinity = none does. */
  get nextTime(): number {
    return this.#entries[0]?.time ?? Number.POSITIVE_INFINITY;
  }

  pop(): HeapEntry | undefined {
    const heap = this.#entries;
    const first = heap[0];
    const last = heap.pop();
    if (!first || !last || heap.length === 0) return first;
    let i = 0;
    for (;;) {
      let child = 2 * i + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && isBefore(heap[child + 1]!, heap[child]!)) child++;
      if (isBefore(last, heap[child]!)) break;
      heap[i] = heap[child]!;
      i = child;
    }
    heap[i] = last;
    return first;
  }
}

function isBefore(a: HeapEntry, b: HeapEntry): boolean {
  return a.time < b.time || (a.time === b.time && a.order < b.order);
}
