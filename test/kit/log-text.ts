import type { Event } from "../../services/gen/ganglion/types/v1/event.ts";

/** logText is all that a log holds as text to search, what events carry as bytes included. */
export function logText(events: readonly Event[]): string {
  return JSON.stringify(events, function (this: Record<string, unknown>, key, value) {
    // A Buffer has been turned into an array of numbers by the time that it comes here as a value.
    const own = this[key];
    if (own instanceof Uint8Array) return Buffer.from(own).toString("utf8");
    return typeof own === "bigint" ? String(own) : value;
  });
}
