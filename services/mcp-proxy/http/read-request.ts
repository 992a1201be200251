import type { IncomingMessage } from "node:http";
import { isCredentialShaped } from "../domain/credential-shaped.ts";
import { judgeBetas } from "../domain/judge-model-request.ts";
import { proxyError } from "../domain/proxy-error.ts";

const MAX_BODY_BYTES = 32 << 20;
const CLOSE = Buffer.from("}");

/** What a request at the model door carries, before anything of it is believed. */
export interface DoorRequest {
  token: string | undefined;
  /** Path and query to be used upstream. */
  path: string;
  /** The only headers of the caller's that go on. */
  headers: Record<string, string>;
}

/** Reads what stands before the body; throws the proxyError of what is wrong. */
export function readHead(request: IncomingMessage, hosts: ReadonlySet<string>): DoorRequest {
  const of = (name: string) => request.headersDistinct[name] ?? [];
  // Whoever believes that this is another server is mistaken or misled (case A040).
  if (of("host").length !== 1 || !hosts.has(of("host")[0] ?? "")) throw proxyError("HEADER_FORBIDDEN");
  const path = request.url ?? "";
  if (request.method !== "POST" || (path !== "/v1/messages" && path !== "/v1/messages?beta=true")) {
    throw proxyError("METHOD_NOT_ALLOWED");
  }
  for (const name of Object.keys(request.headersDistinct)) {
    // `authorization` is the session token's (case A025).
    if (name !== "authorization" && isCredentialShaped(name))
      throw proxyError("HEADER_FORBIDDEN", { metadata: { header: name.slice(0, 64) } });
  }
  const contentType = of("content-type");
  if (contentType.length !== 1 || !/^application\/json(;\s*charset=utf-8)?$/i.test(contentType[0] ?? "")) {
    throw proxyError("INVALID_FIELD", { message: "content-type must be application/json" });
  }
  if (of("content-encoding").length > 0) throw proxyError("HEADER_FORBIDDEN");
  const version = single(of("anthropic-version"), /^\d{4}-\d{2}-\d{2}$/);
  const beta = of("anthropic-beta").join(",");
  judgeBetas(beta === "" ? undefined : beta);
  return {
    token: bearerOf(request),
    path,
    headers: {
      "content-type": "application/json",
      ...(version === undefined ? {} : { "anthropic-version": version }),
      ...(beta === "" ? {} : { "anthropic-beta": beta }),
    },
  };
}

/** The session token, when there is exactly one; two are none. */
export function bearerOf(request: IncomingMessage): string | undefined {
  const values = request.headersDistinct.authorization ?? [];
  const match = values.length === 1 ? /^Bearer ([^\s,]+)$/.exec(values[0] ?? "") : null;
  return match?.[1];
}

/**
 * Reads the body to its end, up to the limit. A harness holds the last byte back until it may send: `foresee` is told what
 * the body will be then, if it is an object, and is given the very same buffer when it was.
 */
export async function readBody(request: IncomingMessage, foresee: (body: Buffer) => void): Promise<Buffer> {
  const length = Number(request.headers["content-length"] ?? 0);
  if (length > MAX_BODY_BYTES) throw tooLarge();
  const chunks: Buffer[] = [];
  let size = 0;
  let foreseen: Buffer | undefined;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > MAX_BODY_BYTES) throw tooLarge();
    chunks.push(chunk);
    if (size === length - 1) {
      foreseen = Buffer.concat([...chunks, CLOSE], length);
      foresee(foreseen);
    }
  }
  if (foreseen && chunks.at(-1)?.equals(CLOSE)) return foreseen;
  return chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks, size);
}

function tooLarge() {
  return proxyError("MESSAGE_TOO_LARGE", { metadata: { limit_bytes: String(MAX_BODY_BYTES) } });
}

function single(values: string[], form: RegExp): string | undefined {
  if (values.length === 0) return undefined;
  if (values.length > 1 || !form.test(values[0] ?? "")) throw proxyError("HEADER_FORBIDDEN");
  return values[0];
}
