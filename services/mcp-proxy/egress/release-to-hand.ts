import type { ServerResponse } from "node:http";
import { isCredentialShaped } from "../domain/credential-shaped.ts";
import { isMintedToken } from "../domain/minted-token.ts";
import { proxyError } from "../domain/proxy-error.ts";
import { type Redacted, redactorsFor, redactText } from "../domain/redact-all.ts";
import type { Redactor } from "../domain/redactor.ts";
import type { RequestTokens } from "../domain/request-tokens.ts";
import type { Traffic } from "../domain/traffic.ts";
import { counted } from "./counted.ts";
import { createHandWriter } from "./hand-writer.ts";
import { readableBody } from "./readable-body.ts";
import { sealAnswer } from "./seal-answer.ts";
import type { OutwardAnswer } from "./send-outward.ts";

/** An answer and who gets it. */
export interface HandRelease {
  answer: OutwardAnswer;
  response: ServerResponse;
  /** What must not be in it. None = it is passed on as it is. */
  secrets: readonly Redacted[];
  /** Tokens that the request brought, and those that are in the answer. */
  tokens: RequestTokens;
  signal: AbortSignal;
  /** Takes note of the answer. */
  traffic: Traffic;
  finish(ending: {
    reason: string;
    status: number;
    responseBytes: number;
    redactions: number;
    detail: string;
    isReleased: true;
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
  const { answer, response, tokens, signal, traffic } = release;
  const { status } = answer;
  const isSearched = release.secrets.length > 0;
  const counters = { status, responseBytes: 0, redactions: 0 };
  let isBegun = false;
  try {
    const read = counted(readableBody(answer, { isSearched, signal }), counters, traffic, MAX_ANSWER_BYTES);
    // Before any header is passed on: what is new may stand there too.
    const sealed = isSearched && tokens.minting.rule !== undefined && (await sealAnswer(read, tokens));
    if (sealed) traffic.cameSecret();
    const secrets = [...release.secrets, ...tokens.known];
    const newRedactor = redactorsFor(secrets);
    const clean = cleanHeaders(answer, {
      isSearched: secrets.length > 0,
      newRedactor,
      isNew: sealed !== false,
    });
    const redactor = newRedactor();
    const isCounted = clean.headers["content-length"] !== undefined;
    const writer = createHandWriter(response, { isCounted, signal });
    for await (const chunk of sealed ? [sealed] : withHeldHead(read, release)) {
      signal.throwIfAborted();
      if (!isBegun) response.writeHead(status, clean.headers).flushHeaders();
      isBegun = true;
      await writer.write(redactor.push(chunk));
    }
    await writer.write(redactor.flush());
    counters.redactions = clean.redactions + redactor.count;
    await release.finish({ reason: "ok", ...counters, detail: tokens.detail, isReleased: true });
    if (!isBegun) response.writeHead(status, clean.headers);
    writer.end();
  } catch (error) {
    answer.body.destroy();
    throw error;
  }
}

/** Holds the beginning of a JSON answer back until it is clear that the answer is no new credential (case A066). */
async function* withHeldHead(
  body: AsyncIterable<Buffer>,
  { answer: { headers }, secrets, tokens }: HandRelease,
): AsyncGenerator<Buffer> {
  const type = String(headers["content-type"] ?? "").toLowerCase();
  if (secrets.length === 0 || !/[/+]json\b/.test(type)) {
    yield* body;
    return;
  }
  let head: Buffer[] | undefined = [];
  let size = 0;
  for await (const chunk of body) {
    if (head === undefined) {
      yield chunk;
      continue;
    }
    head.push(chunk);
    size += chunk.length;
    if (size <= MAX_HEAD_BYTES) continue;
    yield Buffer.concat(head);
    head = undefined;
  }
  if (head === undefined || size === 0) return;
  const json = Buffer.concat(head);
  if (isMintedToken(json, tokens.minting.elsewhere)) throw proxyError("RESPONSE_WITHHELD");
  yield json;
}

/** Without those that may hold a new credential, where the answer is one: only what is in its body is sealed (case A066). */
function cleanHeaders(
  { headers }: OutwardAnswer,
  { isSearched, newRedactor, isNew }: { isSearched: boolean; newRedactor: () => Redactor; isNew: boolean },
) {
  const passed: Record<string, string | string[]> = {};
  let redactions = 0;
  const clean = (text: string) => {
    if (!isSearched) return text;
    const found = redactText(text, newRedactor());
    redactions += found.redactions;
    return found.text;
  };
  for (const [name, value] of Object.entries(headers)) {
    if (value === undefined || NOT_PASSED.has(name) || (isNew && isCredentialShaped(name))) continue;
    // Its length and coding may have changed here.
    if (isSearched && (name === "content-length" || name === "content-encoding")) continue;
    const values = [value].flat().filter((one) => VALUE.test(one));
    // A name that holds the secret is no name that anybody needs.
    if (values.length === 0 || clean(name) !== name) continue;
    const cleaned = values.map(clean);
    passed[name] = cleaned.length === 1 ? (cleaned[0] as string) : cleaned;
  }
  return { headers: passed, redactions };
}
