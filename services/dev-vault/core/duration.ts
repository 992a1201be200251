import { badRequest } from "./vault-error.ts";

const UNIT_MS: Record<string, number> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };
const PART = /(\d+(?:\.\d+)?)(ms|s|m|h|d)/gy;

/** Vault's default and largest life of a token, 768 hours. */
export const MAX_LEASE_MS = 768 * 3_600_000;

/** parseDuration reads a number of seconds or a Go duration string (`90`, `"90"`, `"1h30m"`) into milliseconds. */
export function parseDuration(value: unknown, field: string): number {
  if (value === undefined || value === null || value === "") return 0;
  if (typeof value === "number") return seconds(value, field);
  if (typeof value !== "string") throw badRequest(`field "${field}" is not a duration`);
  if (/^\d+$/.test(value)) return seconds(Number(value), field);
  let total = 0;
  let end = 0;
  PART.lastIndex = 0;
  for (let part = PART.exec(value); part; part = PART.exec(value)) {
    total += Number(part[1]) * (UNIT_MS[part[2] as string] as number);
    end = PART.lastIndex;
  }
  if (end !== value.length) throw badRequest(`field "${field}": "${value}" is not a duration`);
  return Math.round(total);
}

/** formatSeconds is a duration in whole seconds, rounded down, as Vault's lookups show it. */
export function formatSeconds(ms: number): number {
  return Math.max(0, Math.floor(ms / 1000));
}

function seconds(value: number, field: string): number {
  if (!Number.isFinite(value) || value < 0) throw badRequest(`field "${field}" is not a duration`);
  return Math.round(value * 1000);
}
