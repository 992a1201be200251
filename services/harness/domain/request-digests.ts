import { createHash, type Hash } from "node:crypto";

/** SHA-256 of a request and of how it begins. */
export interface RequestDigests {
  body: Buffer;
  stablePrefix: Buffer | null;
  /** Of as much of the stable prefix as the newest request promised; null = nothing was, or there is not as much. */
  promised: Buffer | null;
}

/** Computes all of them. What begins alike is hashed once: a long conversation is megabytes. */
export function requestDigests(
  body: Buffer,
  stablePrefix: Buffer | null,
  promisedBytes: number | undefined,
): RequestDigests {
  if (!stablePrefix)
    return { body: createHash("sha256").update(body).digest(), stablePrefix, promised: null };
  const hash = createHash("sha256");
  const isPromised = promisedBytes !== undefined && promisedBytes <= stablePrefix.length;
  const at = isPromised ? promisedBytes : 0;
  const promised = isPromised ? soFar(hash.update(stablePrefix.subarray(0, at))) : null;
  hash.update(stablePrefix.subarray(at));
  const prefix = soFar(hash);
  const isOfBody = stablePrefix.buffer === body.buffer && stablePrefix.byteOffset === body.byteOffset;
  const whole = isOfBody
    ? hash.update(body.subarray(stablePrefix.length))
    : createHash("sha256").update(body);
  return { body: whole.digest(), stablePrefix: prefix, promised };
}

function soFar(hash: Hash): Buffer {
  return hash.copy().digest();
}
