import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import type {
  PutPayloadRequest,
  PutPayloadRequest_Header,
} from "../../../services/gen/ganglion/session/v1/session_service.ts";
import type { PayloadRef } from "../../../services/gen/ganglion/types/v1/content.ts";
import type { Caller, SessionKit } from "./session-kit.ts";

/** A mebibyte: as much as a message may carry of it. */
export const MIB = 1 << 20;
/** As much as content may have. */
export const MAX = 33_554_432;

/** The digest of some bytes. */
export const sha256 = (bytes: Uint8Array) => createHash("sha256").update(bytes).digest();

/** A piece of content on its way. */
export const data = (value: Buffer): PutPayloadRequest => ({ message: { $case: "data", value } });

/** What begins an upload. */
export function head(
  sessionId: string,
  payloadId: string,
  content: Buffer,
  header: Partial<PutPayloadRequest_Header> = {},
): PutPayloadRequest {
  const value: PutPayloadRequest_Header = {
    sessionId,
    payloadId,
    sizeBytes: BigInt(content.length),
    sha256: sha256(content),
    contentType: "application/octet-stream",
    epoch: undefined,
    ...header,
  };
  return { message: { $case: "header", value } };
}

/** Puts content beside a log. */
export function put(
  caller: Caller,
  sessionId: string,
  payloadId: string,
  content: Buffer,
  { step = 256 * 1024, header = {} }: { step?: number; header?: Partial<PutPayloadRequest_Header> } = {},
) {
  const messages = function* () {
    yield head(sessionId, payloadId, content, header);
    for (let at = 0; at < content.length; at += step) yield data(content.subarray(at, at + step));
  };
  return caller.session.putPayload(messages());
}

/** Reads content from an offset on. */
export async function read(
  caller: Caller,
  sessionId: string,
  payloadId: string,
  offset = 0,
): Promise<Buffer> {
  const parts: Buffer[] = [];
  const request = { sessionId, payloadId, offsetBytes: BigInt(offset) };
  for await (const { data: part } of caller.session.getPayload(request)) {
    assert.ok(part.length > 0 && part.length <= MIB);
    parts.push(Buffer.from(part));
  }
  return Buffer.concat(parts);
}

/** What an event says of content. */
export function refTo(payloadId: string, content: Buffer): PayloadRef {
  return {
    payloadId,
    sizeBytes: BigInt(content.length),
    sha256: sha256(content),
    contentType: "application/json",
    excerpt: "",
  };
}

/** How many pieces of content the database holds, of all sessions. */
export async function countPieces(kit: SessionKit): Promise<number> {
  const [row] = await kit.sql("ganglion_owner", "SELECT count(*)::int AS n FROM session.payload_chunks");
  return row.n;
}
