import type { Readable } from "node:stream";
import type { Dispatcher } from "undici";
import type { MeetPeer } from "../domain/peer-facts.ts";
import { reasonOf } from "../domain/proxy-error.ts";
import { toFailure } from "../upstream/exchange.ts";
import type { Met } from "../upstream/facing-client.ts";
import { UpstreamFailure } from "../upstream/upstream-failure.ts";

/** How long an upstream may take to begin its answer, whatever it sends meanwhile. */
const HEAD_MS = 600_000;

/** A request of a hand as it goes out. */
export interface OutwardRequest {
  path: string;
  method: string;
  /** Name and value in turn. */
  headers: string[];
  body: Buffer | Readable | null;
  signal: AbortSignal;
  /** Told over which connection it goes. */
  met: MeetPeer;
}

/** The answer to it; the body is not read yet. */
export interface OutwardAnswer {
  status: number;
  headers: Record<string, string | string[] | undefined>;
  body: Readable;
}

/** Sends a hand's request and answers when the answer's head is there. Errors are UpstreamFailures without text. */
export async function sendOutward(dispatcher: Dispatcher, request: OutwardRequest): Promise<OutwardAnswer> {
  const { path, method, headers, body, signal, met } = request;
  const late = new AbortController();
  const timer = setTimeout(() => late.abort(new UpstreamFailure("timeout")), HEAD_MS);
  timer.unref();
  const either = AbortSignal.any([signal, late.signal]);
  try {
    const options: Dispatcher.RequestOptions & Met = {
      path,
      method: method as Dispatcher.HttpMethod,
      headers,
      body,
      signal: either,
      met,
    };
    const answer = await dispatcher.request(options);
    // A body that is given up reports that as an error, which nobody else may be listening for.
    answer.body.on("error", () => {});
    return { status: answer.statusCode, headers: answer.headers, body: answer.body };
  } catch (error) {
    // What is wrong with the body may come to light only while it is sent.
    throw reasonOf(error) === undefined ? toFailure(error, either) : error;
  } finally {
    clearTimeout(timer);
  }
}
