import type { Readable, Transform } from "node:stream";
import { createBrotliDecompress, createGunzip, createInflate, createZstdDecompress } from "node:zlib";
import { proxyError } from "../domain/proxy-error.ts";
import { UpstreamFailure } from "../upstream/upstream-failure.ts";
import type { OutwardAnswer } from "./send-outward.ts";

/** What a decoded answer may come to: a bomb is cut here. */
const MAX_DECODED_BYTES = 64 << 20;
const DECODERS: Record<string, () => Transform> = {
  gzip: createGunzip,
  "x-gzip": createGunzip,
  deflate: createInflate,
  br: createBrotliDecompress,
  zstd: createZstdDecompress,
};

/**
 * The body of an answer. One that has to be searched was asked for in plain; where it comes encoded all the same it is
 * decoded, up to a limit, or withheld (case A062).
 */
export function readableBody({ body, headers }: OutwardAnswer, isSearched: boolean): AsyncIterable<Buffer> {
  const coding = headers["content-encoding"];
  if (!isSearched || coding === undefined || coding === "" || coding === "identity") return body;
  const name = typeof coding === "string" ? coding.trim().toLowerCase() : "";
  const make = Object.hasOwn(DECODERS, name) ? DECODERS[name] : undefined;
  if (!make) {
    body.destroy();
    throw proxyError("RESPONSE_WITHHELD");
  }
  return decode(body, make());
}

async function* decode(body: Readable, decoder: Transform): AsyncGenerator<Buffer> {
  body.once("error", (error) => decoder.destroy(error));
  body.pipe(decoder);
  let size = 0;
  try {
    for await (const chunk of decoder as AsyncIterable<Buffer>) {
      size += chunk.length;
      if (size > MAX_DECODED_BYTES) throw new UpstreamFailure("too_large");
      yield chunk;
    }
  } catch (error) {
    const { code } = error as { code?: unknown };
    const isBroken = typeof code === "string" && /^(Z_|ERR__?ERROR|ERR_BROTLI|ZSTD|ERR_BUFFER)/.test(code);
    throw isBroken ? new UpstreamFailure("malformed") : error;
  } finally {
    body.destroy();
    decoder.destroy();
  }
}
