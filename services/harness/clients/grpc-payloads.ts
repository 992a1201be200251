import { createHash } from "node:crypto";
import { GanglionError } from "../../common/errors/ganglion-error.ts";
import type { PutPayloadRequest } from "../../gen/ganglion/session/v1/session_service.ts";
import type { PayloadRef } from "../../gen/ganglion/types/v1/content.ts";
import type { HeldLease } from "../ports/event-log.ts";
import type { SessionClient } from "./service-clients.ts";

const PIECE_BYTES = 1 << 20;
const TIMEOUT_MS = 60_000;

/** Reads one payload whole. What does not have the digest that its event names is not what the event meant. */
export async function readPayload(
  client: SessionClient,
  sessionId: string,
  { payloadId, sizeBytes, sha256 }: PayloadRef,
  signal: AbortSignal,
): Promise<Uint8Array> {
  const bytes = Buffer.allocUnsafe(Number(sizeBytes));
  const hash = createHash("sha256");
  let used = 0;
  const request = { sessionId, payloadId, offsetBytes: 0n };
  for await (const { data } of client.getPayload(request, { signal, timeoutMs: TIMEOUT_MS })) {
    if (used + data.length > bytes.length) throw damaged();
    bytes.set(data, used);
    used += data.length;
    hash.update(data);
  }
  if (used !== bytes.length || !hash.digest().equals(sha256)) throw damaged();
  return bytes;
}

/** Stores one payload under an id that follows from its content, so that a retry stores nothing twice. */
export async function writePayload(
  client: SessionClient,
  lease: HeldLease,
  content: { bytes: Uint8Array; contentType: string; excerpt: string },
  signal: AbortSignal,
): Promise<PayloadRef> {
  const { bytes, contentType, excerpt } = content;
  const sha256 = createHash("sha256").update(bytes).digest();
  const ref = {
    payloadId: `pld_${sha256.toString("hex").slice(0, 48)}`,
    sizeBytes: BigInt(bytes.length),
    sha256,
  };
  const { sessionId, epoch } = lease;
  const pieces = function* (): Generator<PutPayloadRequest> {
    yield { message: { $case: "header", value: { sessionId, ...ref, contentType, epoch } } };
    for (let at = 0; at < bytes.length; at += PIECE_BYTES) {
      yield { message: { $case: "data", value: Buffer.from(bytes.subarray(at, at + PIECE_BYTES)) } };
    }
  };
  await client.putPayload(pieces(), { signal, timeoutMs: TIMEOUT_MS });
  return { ...ref, contentType, excerpt };
}

function damaged(): GanglionError {
  return new GanglionError({
    code: "DATA_LOSS",
    reason: "PAYLOAD_MISMATCH",
    message: "a stored content is not what its event says",
  });
}
