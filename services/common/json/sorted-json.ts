/** sortedJson writes JSON with the keys of every object in order, so that equal values have equal texts wherever they come from. */
export function sortedJson(value: unknown): string {
  return JSON.stringify(value, (_key, part: unknown) => {
    if (typeof part !== "object" || part === null || Array.isArray(part)) return part;
    // fromEntries defines properties, so "__proto__" is a key like any other.
    return Object.fromEntries(Object.entries(part).sort(([a], [b]) => (a < b ? -1 : 1)));
  });
}
