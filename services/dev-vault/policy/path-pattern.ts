/** pathMatches tells whether a policy path with `+` segments or a `*` at its end covers a request path. */
export function pathMatches(pattern: string, path: string): boolean {
  const isGlob = pattern.endsWith("*");
  const wanted = (isGlob ? pattern.slice(0, -1) : pattern).split("/");
  const given = path.split("/");
  const last = wanted.length - 1;
  if (isGlob ? given.length < wanted.length : given.length !== wanted.length) return false;
  return wanted.every((part, index) => {
    const value = given[index] as string;
    if (part === "+") return value !== "";
    return isGlob && index === last ? value.startsWith(part) : value === part;
  });
}

/** rankPattern compares two patterns that both match: above 0 when the first is the more specific one. */
export function rankPattern(a: string, b: string): number {
  return (
    firstWildcard(a) - firstWildcard(b) ||
    Number(b.endsWith("*")) - Number(a.endsWith("*")) ||
    plusCount(b) - plusCount(a) ||
    a.length - b.length ||
    (a < b ? -1 : 1)
  );
}

function firstWildcard(pattern: string): number {
  const segments = pattern.split("/");
  const plus = segments.indexOf("+");
  const atPlus = plus < 0 ? Number.POSITIVE_INFINITY : segments.slice(0, plus).join("").length + plus;
  const atGlob = pattern.endsWith("*") ? pattern.length - 1 : Number.POSITIVE_INFINITY;
  return Math.min(atPlus, atGlob, Number.MAX_SAFE_INTEGER);
}

function plusCount(pattern: string): number {
  return pattern.split("/").filter((segment) => segment === "+").length;
}
