/** keepNewest forgets the oldest entries of a set or map beyond so many. */
export function keepNewest<K>(entries: Set<K> | Map<K, unknown>, max: number): void {
  for (const oldest of entries.keys()) {
    if (entries.size <= max) break;
    entries.delete(oldest);
  }
}
