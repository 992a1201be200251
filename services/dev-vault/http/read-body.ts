import type { IncomingMessage } from "node:http";
import { VaultError } from "../core/vault-error.ts";

const MAX_BODY_BYTES = 4 << 20;

/** readBody reads a request's JSON object; no body is an empty one. */
export async function readBody(message: IncomingMessage): Promise<Record<string, unknown>> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of message as AsyncIterable<Buffer>) {
    length += chunk.length;
    if (length > MAX_BODY_BYTES) throw new VaultError(413, "http: request body too large");
    chunks.push(chunk);
  }
  if (length === 0) return {};
  const body = Buffer.concat(chunks);
  for (const chunk of chunks) chunk.fill(0);
  try {
    return readObject(body);
  } finally {
    body.fill(0);
  }
}

function readObject(body: Buffer): Record<string, unknown> {
  let value: unknown;
  try {
    value = JSON.parse(body.toString("utf8"));
  } catch {
    // The parser's own message would repeat a part of the body, which may be a secret.
    throw new VaultError(400, "failed to decode JSON input: invalid character");
  }
  if (value === null) return {};
  if (typeof value !== "object" || Array.isArray(value)) {
    throw new VaultError(400, "failed to decode JSON input: the body must be a JSON object");
  }
  return value as Record<string, unknown>;
}
