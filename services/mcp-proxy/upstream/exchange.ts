import type { Dispatcher } from "undici";
import type { MeetPeer } from "../domain/peer-facts.ts";
import { decodeBody, decoderOf } from "./decode-body.ts";
import type { Met } from "./facing-client.ts";
import { UpstreamFailure } from "./upstream-failure.ts";

/** A request to an upstream, built from nothing: no header of a caller is in it. */
export interface UpstreamRequest {
  path: string;
  method: "GET" | "POST";
  headers: Record<string, string>;
  body?: Buffer | string;
  signal: AbortSignal;
  /** Told over which connection it goes. */
  met: MeetPeer;
}

/** The upstream's answer; the body is not read yet. */
export interface UpstreamAnswer {
  status: number;
  header(name: string): string | undefined;
  body: AsyncIterable<Buffer>;
  /** Gives up what has not been read; a short rest is read away so that the connection can be used again. */
  discard(): void;
}

/** Sends one request and answers when the headers are there. Errors are UpstreamFailures without text. */
export async function exchange(dispatcher: Dispatcher, request: UpstreamRequest): Promise<UpstreamAnswer> {
  const { path, method, headers, body, signal, met } = request;
  let answer: Dispatcher.ResponseData;
  try {
    const options: Dispatcher.RequestOptions & Met = {
      path,
      method,
      headers: { ...headers, "accept-encoding": "identity" },
      ...(body === undefined ? {} : { body }),
      signal,
      met,
    };
    answer = await dispatcher.request(options);
  } catch (error) {
    throw toFailure(error, signal);
  }
  // A body that is given up reports that as an error, which nobody else may be listening for.
  answer.body.on("error", () => {});
  const discard = () => void answer.body.dump({ limit: 16_384 }).catch(() => {});
  const header = (name: string) => {
    const value = answer.headers[name];
    return typeof value === "string" ? value : undefined;
  };
  const coding = answer.headers["content-encoding"];
  if (coding === undefined || coding === "identity") {
    return { status: answer.statusCode, header, body: answer.body, discard };
  }
  // It was asked for in plain.
  const decoder = typeof coding === "string" ? decoderOf(coding) : undefined;
  if (!decoder) {
    // What cannot be read cannot be searched for the credential (case A062).
    discard();
    throw new UpstreamFailure("malformed", answer.statusCode);
  }
  return { status: answer.statusCode, header, body: decodeBody(answer.body, decoder), discard };
}

/** Turns what undici throws into a failure without text. */
export function toFailure(error: unknown, signal: AbortSignal): UpstreamFailure {
  if (error instanceof UpstreamFailure) return error;
  if (signal.aborted) {
    return signal.reason instanceof UpstreamFailure ? signal.reason : new UpstreamFailure("cancelled");
  }
  const { code, name } = error as { code?: unknown; name?: unknown };
  if (code === "UND_ERR_HEADERS_TIMEOUT" || code === "UND_ERR_BODY_TIMEOUT")
    return new UpstreamFailure("timeout");
  if (code === "UND_ERR_HEADERS_OVERFLOW" || name === "HTTPParserError")
    return new UpstreamFailure("malformed");
  return new UpstreamFailure("broken");
}
