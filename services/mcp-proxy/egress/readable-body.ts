import { proxyError } from "../domain/proxy-error.ts";
import { decodeBody, decoderOf } from "../upstream/decode-body.ts";
import { toFailure } from "../upstream/exchange.ts";
import { UpstreamFailure } from "../upstream/upstream-failure.ts";
import type { OutwardAnswer } from "./send-outward.ts";

/** What a decoded answer may come to: a bomb is cut here. */
const MAX_DECODED_BYTES = 64 << 20;

/**
 * The body of an answer. One that has to be searched was asked for in plain; where it comes encoded all the same it is
 * decoded, up to a limit, or withheld (case A062). Fails with UpstreamFailures without text.
 */
export function readableBody(
  { body, headers }: OutwardAnswer,
  { isSearched, signal }: { isSearched: boolean; signal: AbortSignal },
): AsyncIterable<Buffer> {
  const coding = headers["content-encoding"];
  if (!isSearched || coding === undefined || coding === "" || coding === "identity") {
    return explained(body, signal);
  }
  const decoder = typeof coding === "string" ? decoderOf(coding) : undefined;
  if (!decoder) {
    body.destroy();
    throw proxyError("RESPONSE_WITHHELD");
  }
  return explained(bounded(decodeBody(body, decoder)), signal);
}

async function* explained(body: AsyncIterable<Buffer>, signal: AbortSignal): AsyncGenerator<Buffer> {
  try {
    yield* body;
  } catch (error) {
    throw toFailure(error, signal);
  }
}

async function* bounded(decoded: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let size = 0;
  for await (const chunk of decoded) {
    size += chunk.length;
    if (size > MAX_DECODED_BYTES) throw new UpstreamFailure("too_large");
    yield chunk;
  }
}
