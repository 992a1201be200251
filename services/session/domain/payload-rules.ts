import type { Violations } from "../../common/errors/violations.ts";
import type { PayloadRef } from "../../gen/ganglion/types/v1/content.ts";
import { ID } from "./id-shape.ts";

/** Most bytes that one payload may have. */
export const MAX_PAYLOAD_BYTES = 33_554_432;
/** Bytes of a SHA-256. */
export const DIGEST_BYTES = 32;
const MAX_EXCERPT_BYTES = 4_096;
// As a header field carries it: printable ASCII.
const MEDIA_TYPE = /^[\x20-\x7e]{1,127}$/;

/** checkFacts checks what a header or a reference says of content; a size beyond the limit is an error of its own. */
export function checkFacts(
  violations: Violations,
  path: string,
  facts: Pick<PayloadRef, "payloadId" | "sizeBytes" | "sha256" | "contentType">,
): void {
  violations.string(`${path}.payload_id`, facts.payloadId, {
    required: true,
    pattern: ID,
    patternMeans: "1 to 64 letters, digits, _ or -",
  });
  violations.integer(`${path}.size_bytes`, facts.sizeBytes, { min: 1n });
  violations.check(facts.sha256.length === DIGEST_BYTES, `${path}.sha256`, "must be 32 bytes");
  violations.string(`${path}.content_type`, facts.contentType, {
    required: true,
    pattern: MEDIA_TYPE,
    patternMeans: "a media type of 1 to 127 characters",
  });
}

/** checkPayloadRef checks an event's reference to content. */
export function checkPayloadRef(violations: Violations, path: string, ref: PayloadRef): void {
  checkFacts(violations, path, ref);
  violations.integer(`${path}.size_bytes`, ref.sizeBytes, { max: BigInt(MAX_PAYLOAD_BYTES) });
  violations.string(`${path}.excerpt`, ref.excerpt, { maxBytes: MAX_EXCERPT_BYTES });
}
