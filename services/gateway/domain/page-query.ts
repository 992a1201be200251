import { invalid } from "./refuse.ts";

/** Query parameters, each name with its values. */
export type Query = Readonly<Record<string, readonly string[]>>;

/** readQuery splits a query string; array parameters come as name[]. Unknown names are refused. */
export function readQuery(search: string, known: readonly string[]): Query {
  const query: Record<string, string[]> = Object.create(null) as Record<string, string[]>;
  for (const [name, value] of new URLSearchParams(search)) {
    const plain = name.endsWith("[]") ? name.slice(0, -2) : name;
    // The SDK used to send ?beta=true.
    if (plain === "beta") continue;
    if (!known.includes(plain)) throw invalid(name, "is not known");
    query[plain] = [...(query[plain] ?? []), value];
  }
  return query;
}

/** One value of a parameter. */
export function one(query: Query, name: string): string | undefined {
  const values = query[name];
  if (values && values.length > 1) throw invalid(name, "must be given once");
  return values?.[0];
}

/** limitOf reads `limit`; `most` is the largest that is served. */
export function limitOf(query: Query, preset: number, most: number): number {
  const text = one(query, "limit");
  if (text === undefined) return preset;
  const limit = Number(text);
  if (!Number.isInteger(limit) || limit < 1 || limit > most)
    throw invalid("limit", `must be from 1 to ${most}`);
  return limit;
}

/** flagOf reads true or false. */
export function flagOf(query: Query, name: string): boolean {
  const text = one(query, name) ?? "false";
  if (text !== "true" && text !== "false") throw invalid(name, "must be true or false");
  return text === "true";
}

/** wholeOf reads a whole number from 1; 0 where it is not given. */
export function wholeOf(query: Query, name: string): number {
  const text = one(query, name);
  if (text === undefined) return 0;
  const number = Number(text);
  if (!Number.isInteger(number) || number < 1 || number > 2_147_483_647)
    throw invalid(name, "must be a whole number from 1");
  return number;
}

/** orderOf reads asc or desc. */
export function orderOf(query: Query, preset: "asc" | "desc"): "asc" | "desc" {
  const text = one(query, "order") ?? preset;
  if (text !== "asc" && text !== "desc") throw invalid("order", "must be asc or desc");
  return text;
}
