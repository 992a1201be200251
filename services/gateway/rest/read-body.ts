import { GanglionError } from "../../common/errors/ganglion-error.ts";
import { asObject, invalid } from "../domain/refuse.ts";
import type { RestContext } from "./rest-deps.ts";

const MAX_BYTES = 32_000_000;
/** Deeper than anything the API knows, and far from what exhausts a stack. [A112] */
const MAX_DEPTH = 100;

/** readBody reads a request's JSON object; an empty body counts as an empty object. Larger ones are refused unread. */
export async function readBody(c: RestContext): Promise<Record<string, unknown>> {
  if (Number(c.req.header("content-length") ?? 0) > MAX_BYTES) throw tooLarge();
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of (c.req.raw.body ?? []) as AsyncIterable<Uint8Array>) {
    size += chunk.length;
    if (size > MAX_BYTES) throw tooLarge();
    chunks.push(chunk);
  }
  if (size === 0) return {};
  let parsed: unknown;
  try {
    parsed = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(Buffer.concat(chunks)));
  } catch {
    throw invalid("body", "must be JSON in UTF-8");
  }
  refuseDeep(parsed);
  return asObject(parsed, "body");
}

/** Level by level, since what is too deep for others is too deep for a recursion here. */
function refuseDeep(document: unknown): void {
  let level = [document];
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > MAX_DEPTH) throw invalid("body", `must not be nested deeper than ${MAX_DEPTH} levels`);
    level = level.flatMap((value) =>
      typeof value === "object" && value !== null ? Object.values(value) : [],
    );
  }
}

function tooLarge(): GanglionError {
  return new GanglionError({
    code: "RESOURCE_EXHAUSTED",
    reason: "TOO_LARGE",
    message: "a request has at most 32 MB",
    metadata: { limit_bytes: String(MAX_BYTES) },
  });
}
