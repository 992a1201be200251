import type { Readable, Transform } from "node:stream";
import { createBrotliDecompress, createGunzip, createInflate, createZstdDecompress } from "node:zlib";
import { UpstreamFailure } from "./upstream-failure.ts";

const DECODERS: Record<string, () => Transform> = {
  gzip: createGunzip,
  "x-gzip": createGunzip,
  deflate: createInflate,
  br: createBrotliDecompress,
  zstd: createZstdDecompress,
};

/** What undoes a content coding; undefined for one that is not known, or for several at once. */
export function decoderOf(coding: string): Transform | undefined {
  const name = coding.trim().toLowerCase();
  return Object.hasOwn(DECODERS, name) ? DECODERS[name]?.() : undefined;
}

/**
 * A body as it was before it was encoded, so that it can be searched for the credential (case A062). Whoever reads it
 * counts what comes: of a bomb no more is unpacked than is read.
 */
export async function* decodeBody(body: Readable, decoder: Transform): AsyncGenerator<Buffer> {
  let broken: unknown;
  body.once("error", (error) => {
    broken = error;
    decoder.destroy(error);
  });
  body.once("close", () => {
    // Cut off without an error: the decoder would wait for ever.
    if (!body.readableEnded) decoder.destroy(new UpstreamFailure("broken"));
  });
  body.pipe(decoder);
  try {
    for await (const chunk of decoder as AsyncIterable<Buffer>) yield chunk;
  } catch (error) {
    // Whatever does not come from the connection comes from bytes that are not what they say.
    throw broken ?? (error instanceof UpstreamFailure ? error : new UpstreamFailure("malformed"));
  } finally {
    body.destroy();
    decoder.destroy();
  }
}
