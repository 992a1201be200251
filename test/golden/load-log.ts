import { readdirSync, readFileSync } from "node:fs";
import { Event } from "../../services/gen/ganglion/types/v1/event.ts";

const LOGS = new URL("./logs/", import.meta.url);
const FIRST_TIME = Date.UTC(2026, 0, 1);

/** An event of a golden log as it is written down. */
export interface WrittenEvent {
  id: string;
  type: string;
  body: Record<string, unknown>;
}

/** Names of the golden logs. */
export function goldenLogs(): string[] {
  return readdirSync(LOGS)
    .filter((file) => file.endsWith(".json"))
    .map((file) => file.slice(0, -".json".length))
    .sort();
}

/** Reads one golden log as the events that the session service would answer with. */
export function loadLog(name: string): Event[] {
  return toEvents(JSON.parse(readFileSync(new URL(`${name}.json`, LOGS), "utf8")) as WrittenEvent[]);
}

/** Turns written events into messages with positions 1, 2, 3 … */
export function toEvents(written: readonly WrittenEvent[]): Event[] {
  return written.map((event, i) =>
    Event.fromJSON({
      id: event.id,
      type: event.type,
      position: String(i + 1),
      createTime: new Date(FIRST_TIME + i * 1000).toISOString(),
      [camelCase(event.type)]: encode(event.body),
    }),
  );
}

function encode(body: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(body).map(([name, value]) => {
      if (name.endsWith("Json")) return [name, base64(value)];
      if (name === "block" || name === "summary") return [name, block(value)];
      if (name === "content" && Array.isArray(value)) return [name, value.map(block)];
      if (Array.isArray(value)) return [name, value.map((item) => (isObject(item) ? encode(item) : item))];
      return [name, isObject(value) ? encode(value) : value];
    }),
  );
}

function block(value: unknown): unknown {
  const parsed = typeof value === "string" ? (JSON.parse(value) as unknown) : value;
  return { type: isObject(parsed) ? parsed.type : "", json: base64(value) };
}

function base64(value: unknown): string {
  return Buffer.from(typeof value === "string" ? value : JSON.stringify(value)).toString("base64");
}

function camelCase(type: string): string {
  return type.replaceAll(/[._]([a-z])/g, (_, letter: string) => letter.toUpperCase());
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
