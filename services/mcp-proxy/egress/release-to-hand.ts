import type { ServerResponse } from "node:http";
import { isMintedToken } from "../domain/minted-token.ts";
import { proxyError } from "../domain/proxy-error.ts";
import { createRedactors, type Redacted, redactText } from "../domain/redact-all.ts";
import { UpstreamFailure } from "../upstream/upstream-failure.ts";
import { createHandWriter } from "./hand-writer.ts";
import { readableBody } from "./readable-body.ts";
import type { OutwardAnswer } from "./send-outward.ts";

/** An answer and who gets it. */
export interface HandRelease {
  answer: OutwardAnswer;
  response: ServerResponse;
  /** What must not be in it. None = it is passed on as it is. */
  secrets: readonly Redacted[];
  signal: AbortSignal;
  finish(ending: {
    reason: string;
    status: number;
    responseBytes: number;
    redactions: number;
  }): Promise<void>;
}

const MAX_ANSWER_BYTES = 4 * 2 ** 30;
/** JSON up to here is looked at as a whole before anything of it is passed on. */
const MAX_HEAD_BYTES = 65_536;
const NOT_PASSED = new Set([
  "connection",
  "keep-alive",
  "proxy-authenticate",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
  // It would send a client past the proxy, which it cannot pass.
  "alt-svc",
]);
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;

/**
 * Passes an answer on while it comes, without the secrets; it ends when its outcome is written. Redirects are answers like
 * any other; nobody here follows them.
 */
export async function releaseToHand(release: HandRelease): Promise<void> {
  const { answer, response, secrets, signal } = release;
  const { status } = answer;
  const redactor = createRedactors(secrets);
  const clean = cleanHeaders(answer, secrets);
  const counters = { status, responseBytes: 0, redactions: clean.redactions };
  const isSearched = secrets.length > 0;
  const isCounted = clean.headers["content-length"] !== undefined;
  const writer = createHandWriter(response, { isCounted, signal });
  const body = withHeldHead(readableBody(answer, { isSearched, signal }), answer, isSearched);
  let isBegun = false;
  try {
    for await (const chunk of body) {
      signal.throwIfAborted();
      counters.responseBytes += chunk.length;
      if (counters.responseBytes > MAX_ANSWER_BYTES) throw new UpstreamFailure("too_large", status);
      if (!isBegun) response.writeHead(status, clean.headers).flushHeaders();
      isBegun = true;
      await writer.write(redactor.push(chunk));
    }
    await writer.write(redactor.flush());
  } catch (error) {
    answer.body.destroy();
    throw error;
  }
  counters.redactions += redactor.count;
  await release.finish({ reason: "ok", ...counters });
  if (!isBegun) response.writeHead(status, clean.headers);
  writer.end();
}

/** Holds the beginning of a JSON answer back until it is clear that the answer is no new credential (case A066). */
async function* withHeldHead(
  body: AsyncIterable<Buffer>,
  { headers }: OutwardAnswer,
  isCredentialled: boolean,
): AsyncGenerator<Buffer> {
  const type = String(headers["content-type"] ?? "").toLowerCase();
  if (!isCredentialled || !/[/+]json\b/.test(type)) {
    yield* body;
    return;
  }
  let head: Buffer | undefined = Buffer.alloc(0);
  for await (const chunk of body) {
    if (head === undefined) {
      yield chunk;
      continue;
    }
    head = Buffer.concat([head, chunk]);
    if (head.length <= MAX_HEAD_BYTES) continue;
    yield head;
    head = undefined;
  }
  if (head === undefined || head.length === 0) return;
  if (isMintedToken(head)) throw proxyError("RESPONSE_WITHHELD");
  yield head;
}

function cleanHeaders({ headers }: OutwardAnswer, secrets: readonly Redacted[]) {
  const passed: Record<string, string | string[]> = {};
  let redactions = 0;
  const clean = (text: string) => {
    if (secrets.length === 0) return text;
    const found = redactText(text, secrets);
    redactions += found.redactions;
    return found.text;
  };
  for (const [name, value] of Object.entries(headers)) {
    if (value === undefined || NOT_PASSED.has(name)) continue;
    // Its length and coding may have changed here.
    if (secrets.length > 0 && (name === "content-length" || name === "content-encoding")) continue;
    const values = [value].flat().filter((one) => VALUE.test(one));
    // A name that holds the secret is no name that anybody needs.
    if (values.length === 0 || clean(name) !== name) continue;
    const cleaned = values.map(clean);
    passed[name] = cleaned.length === 1 ? (cleaned[0] as string) : cleaned;
  }
  return { headers: passed, redactions };
}
