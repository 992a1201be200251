import type { IncomingMessage } from "node:http";
import { Readable } from "node:stream";
import type { Variable } from "../domain/judge-egress.ts";
import { proxyError } from "../domain/proxy-error.ts";
import type { RequestTokens } from "../domain/request-tokens.ts";
import {
  createSubstitution,
  encodeForBody,
  type Substitution,
  substituteHeader,
} from "../domain/substitute.ts";
import { leaving, type Traffic } from "../domain/traffic.ts";

/** A credential with its secret, for one request. */
export interface Substituted extends Variable {
  value: string;
}

/** A body as it goes out. */
export interface OutwardBody {
  content: Buffer | Readable | null;
  /** Headers about it, as name and value in turn. */
  headers: string[];
  /** Bytes, when that is known before. */
  length: number | undefined;
}

/** Bodies up to here are read before they are sent, so that their length can be said after the replacement. */
const MAX_READ_BYTES = 1 << 20;
/** What may become of such a body: a placeholder is short, and a secret may be long. */
const MAX_REPLACED_BYTES = 16 << 20;
const MAX_BODY_BYTES = 4 * 2 ** 30;
// Headers between two neighbours, and those that this proxy writes itself.
const NOT_PASSED = new Set([
  "connection",
  "keep-alive",
  "proxy-connection",
  "proxy-authorization",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
  "host",
  "content-length",
  "expect",
]);
// Where answers are read: of one that comes in parts each could have a part of a secret (cases A058, A066).
const NOT_WITH_SECRETS = new Set(["accept-encoding", "range", "if-range"]);

/** The headers of a hand's request as they go out, name and value in turn. */
export function outwardHeaders(
  request: IncomingMessage,
  sent: readonly Substituted[],
  tokens: RequestTokens,
): string[] {
  const named = (request.headers.connection ?? "").split(",").map((name) => name.trim().toLowerCase());
  const values = new Map(
    sent.filter(({ inHeader }) => inHeader).map(({ placeholder, value }) => [placeholder, value]),
  );
  const headers: string[] = [];
  for (let i = 0; i < request.rawHeaders.length; i += 2) {
    const name = request.rawHeaders[i] ?? "";
    const key = name.toLowerCase();
    if (NOT_PASSED.has(key) || named.includes(key)) continue;
    // What comes back is searched for the secrets, so it has to be readable (case A062), and whole.
    if (sent.length > 0 && NOT_WITH_SECRETS.has(key)) continue;
    headers.push(name, substituteHeader(tokens.inHeader(request.rawHeaders[i + 1] ?? ""), values));
  }
  return sent.length > 0 ? [...headers, "accept-encoding", "identity"] : headers;
}

/** The body of a hand's request as it goes out. */
export async function outwardBody(
  request: IncomingMessage,
  sent: readonly Substituted[],
  tokens: RequestTokens,
  traffic: Traffic,
): Promise<OutwardBody> {
  const { "content-length": stated, "transfer-encoding": coding } = request.headers;
  const length = stated === undefined ? undefined : Number(stated);
  if (coding === undefined && !length) return { content: null, headers: [], length: 0 };
  if ((length ?? 0) > MAX_BODY_BYTES) throw proxyError("MESSAGE_TOO_LARGE");
  const type = request.headers["content-type"] ?? "";
  const inBody = sent.filter((variable) => variable.inBody);
  const values = new Map(inBody.map(({ placeholder, value }) => [placeholder, encodeForBody(value, type)]));
  const onSecret = () => traffic.sentSecret();
  const unsealed = substituted(bounded(request), tokens.inBody(type, onSecret));
  if (values.size === 0) {
    // No sealed token opens here either: either the body goes out as it is, or it is refused on the way.
    const headers = length === undefined ? [] : ["content-length", String(length)];
    return { content: Readable.from(leaving(unsealed, traffic)), headers, length };
  }
  const replaced = leaving(substituted(unsealed, createSubstitution(values, onSecret)), traffic);
  if (length === undefined || length > MAX_READ_BYTES) {
    return { content: Readable.from(replaced), headers: [], length };
  }
  const content = await readAll(replaced);
  return { content, headers: ["content-length", String(content.length)], length: content.length };
}

async function* bounded(request: IncomingMessage): AsyncGenerator<Buffer> {
  let size = 0;
  // An answer that comes before the end of the body can still be passed back.
  const chunks: AsyncIterable<Buffer> = request.iterator({ destroyOnReturn: false });
  for await (const chunk of chunks) {
    size += chunk.length;
    if (size > MAX_BODY_BYTES) throw proxyError("MESSAGE_TOO_LARGE");
    yield chunk;
  }
}

async function* substituted(body: AsyncIterable<Buffer>, substitution: Substitution): AsyncGenerator<Buffer> {
  for await (const chunk of body) {
    const bytes = substitution.push(chunk);
    if (bytes.length > 0) yield bytes;
  }
  const rest = substitution.flush();
  if (rest.length > 0) yield rest;
}

async function readAll(body: AsyncIterable<Buffer>): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of body) {
    size += chunk.length;
    if (size > MAX_REPLACED_BYTES) throw proxyError("MESSAGE_TOO_LARGE");
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}
