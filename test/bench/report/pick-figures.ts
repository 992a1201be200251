/** pickFigures keeps the names that begin with the prefix; an empty prefix keeps them all. */
export function pickFigures(names: readonly string[], prefix: string): string[] {
  return names.filter((name) => name.startsWith(prefix));
}
