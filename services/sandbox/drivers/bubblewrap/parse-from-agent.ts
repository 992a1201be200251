import type { BackgroundProcess, FromAgent, ToolResult } from "../../hand-agent/protocol.ts";

type Json = Record<string, unknown>;

/** parseFromAgent checks a frame from inside a hand field by field and throws when anything is off. */
export function parseFromAgent(message: unknown): FromAgent {
  const frame = object(message);
  switch (frame.type) {
    case "ready":
      return { type: "ready" };
    case "started":
      return { type: "started", id: integer(frame.id) };
    case "pong":
      return { type: "pong", nonce: integer(frame.nonce) };
    case "unclean":
      return { type: "unclean", detail: "" };
    case "result":
      return { type: "result", id: integer(frame.id), result: parseResult(object(frame.result)) };
    default:
      throw new TypeError("unknown frame");
  }
}

function parseResult(result: Json): ToolResult {
  return {
    isError: boolean(result.isError),
    // Lone surrogates could not be stored or sent on.
    text: string(result.text).toWellFormed().replaceAll("\0", "\u2400"),
    wasStarted: boolean(result.wasStarted),
    outputBytes: integer(result.outputBytes),
    isTruncated: boolean(result.isTruncated),
    exitCode: result.exitCode === null ? null : integer(result.exitCode) & 0xff,
    isTimedOut: boolean(result.isTimedOut),
    isCancelled: boolean(result.isCancelled),
    background: array(result.background).map(parseProcess),
  };
}

function parseProcess(value: unknown): BackgroundProcess {
  const process = object(value);
  return { pid: integer(process.pid), command: string(process.command).toWellFormed() };
}

function object(value: unknown): Json {
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw new TypeError("not an object");
  return value as Json;
}

function array(value: unknown): unknown[] {
  if (!Array.isArray(value)) throw new TypeError("not an array");
  return value;
}

function string(value: unknown): string {
  if (typeof value !== "string") throw new TypeError("not a string");
  return value;
}

function boolean(value: unknown): boolean {
  if (typeof value !== "boolean") throw new TypeError("not a boolean");
  return value;
}

function integer(value: unknown): number {
  if (!Number.isSafeInteger(value) || (value as number) < 0) throw new TypeError("not a whole number");
  return value as number;
}
