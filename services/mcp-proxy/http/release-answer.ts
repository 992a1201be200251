import { once } from "node:events";
import type { ServerResponse } from "node:http";
import { crashPoint } from "../../common/crash/crash-point.ts";
import type { Passage } from "../domain/passage.ts";
import { proxyError } from "../domain/proxy-error.ts";
import { createRedactor } from "../domain/redactor.ts";
import type { Traffic } from "../domain/traffic.ts";
import type { UpstreamAnswer } from "../upstream/exchange.ts";
import { UpstreamFailure } from "../upstream/upstream-failure.ts";
import { sendEnvelope } from "./error-envelope.ts";
import { readUpstreamError } from "./upstream-error.ts";

const MAX_ERROR_BYTES = 65_536;
const MAX_ANSWER_BYTES = 256 << 20;
/** Headers of the upstream that go on, when they look like this. */
const PASSED: readonly [string, RegExp][] = [
  ["retry-after", /^\d{1,6}$/],
  ["retry-after-ms", /^\d{1,9}$/],
  ["x-should-retry", /^(true|false)$/],
  ["request-id", /^[A-Za-z0-9_-]{1,128}$/],
];
const CONTENT_TYPE = /^(application\/json|text\/event-stream)(;\s*charset=[a-z0-9-]{1,20})?$/i;

/** What is released, to whom. */
export interface Release {
  answer: UpstreamAnswer;
  response: ServerResponse;
  passage: Passage;
  secret: string;
  /** Headers of our own. */
  marks: Record<string, string>;
  signal: AbortSignal;
}

/**
 * Passes the upstream's answer on while it comes, without the credential. The answer's end is held until the outcome is
 * written: an answer that ends well is one that the log knows of.
 */
export async function releaseAnswer(release: Release): Promise<void> {
  const { answer, response, passage, marks, signal } = release;
  const headers = passedHeaders(answer, marks);
  if (answer.status >= 300 && answer.status < 400) {
    answer.discard();
    throw proxyError("UPSTREAM_REDIRECT");
  }
  if (answer.status !== 200) {
    const body = await readSome(answer, passage.traffic);
    if (isIn(body, release.secret)) passage.traffic.cameSecret();
    await passage.finish({ reason: "upstream_error", status: answer.status, responseBytes: body.length });
    const status = answer.status >= 400 && answer.status < 600 ? answer.status : 502;
    sendEnvelope(response, { status, ...readUpstreamError(answer.status, body), headers });
    return;
  }
  const contentType = answer.header("content-type") ?? "";
  if (!CONTENT_TYPE.test(contentType)) {
    answer.discard();
    throw proxyError("UPSTREAM_MALFORMED");
  }
  response.writeHead(200, { "content-type": contentType, "cache-control": "no-store", ...headers });
  response.flushHeaders();
  const counters = { responseBytes: 0, redactions: 0 };
  try {
    await pipe(release, counters);
  } catch {
    await passage.finish({ reason: cutReason(signal), status: 200, ...counters });
    response.destroy();
    return;
  }
  await passage.finish({ reason: "ok", status: 200, ...counters, isReleased: true });
  crashPoint("model.end");
  response.end();
}

async function pipe(
  { answer, response, secret, passage, signal }: Release,
  counters: { responseBytes: number; redactions: number },
): Promise<void> {
  const redactor = createRedactor(secret, passage.credential?.credentialId ?? "");
  const write = async (bytes: Buffer) => {
    if (bytes.length > 0 && !response.write(bytes)) await once(response, "drain", { signal });
  };
  try {
    for await (const chunk of answer.body) {
      signal.throwIfAborted();
      counters.responseBytes += chunk.length;
      passage.traffic.came(chunk);
      // Searched also where it is the last: the log has no HMAC of an answer with the credential in it.
      const clean = redactor.push(chunk);
      if (counters.responseBytes > MAX_ANSWER_BYTES) throw new UpstreamFailure("too_large");
      crashPoint("model.pass");
      await write(clean);
    }
    passage.traffic.cameAll();
    await write(redactor.flush());
  } finally {
    counters.redactions = redactor.count;
    answer.discard();
  }
}

function cutReason(signal: AbortSignal): string {
  if (!signal.aborted) return "broken";
  const { reason } = signal.reason as { reason?: string };
  return reason?.toLowerCase() ?? "cancelled";
}

function passedHeaders(answer: UpstreamAnswer, marks: Record<string, string>): Record<string, string> {
  const headers = { ...marks };
  for (const [name, form] of PASSED) {
    const value = answer.header(name);
    if (value !== undefined && form.test(value)) headers[name] = value;
  }
  return headers;
}

async function readSome({ body, discard }: UpstreamAnswer, traffic: Traffic): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let size = 0;
  try {
    for await (const chunk of body) {
      chunks.push(chunk);
      size += chunk.length;
      if (size > MAX_ERROR_BYTES) break;
    }
    if (size <= MAX_ERROR_BYTES) traffic.cameAll();
  } catch {
    // The status says enough.
  }
  discard();
  const some = Buffer.concat(chunks, size).subarray(0, MAX_ERROR_BYTES);
  traffic.came(some);
  return some;
}

function isIn(body: Buffer, secret: string): boolean {
  const redactor = createRedactor(secret, "");
  redactor.push(body);
  redactor.flush();
  return redactor.count > 0;
}
