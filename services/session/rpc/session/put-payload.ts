import { createHash, type Hash } from "node:crypto";
import { GanglionError } from "../../../common/errors/ganglion-error.ts";
import { Violations } from "../../../common/errors/violations.ts";
import type { CallContext } from "../../../common/grpc/call-context.ts";
import { clientStream } from "../../../common/grpc/handlers.ts";
import type {
  PutPayloadRequest,
  PutPayloadRequest_Header,
  PutPayloadResponse,
} from "../../../gen/ganglion/session/v1/session_service.ts";
import { scopeOf } from "../../domain/caller.ts";
import { invalidField, payloadMismatch, tooLarge } from "../../domain/errors.ts";
import { checkFacts, MAX_PAYLOAD_BYTES } from "../../domain/payload-rules.ts";
import {
  type PayloadFacts,
  type PayloadPutter,
  PIECE_BYTES,
  type Upload,
} from "../../ports/payload-store.ts";
import { callerOf } from "../caller-of.ts";
import { checkId } from "../check-request.ts";
import type { Deps } from "../deps.ts";

// An upload that takes longer than this is not one.
const MAX_UPLOAD_MS = 15 * 60_000;

/** Stores content beside the log, piece by piece as it comes; it is there when all of it came, or not at all. */
export const putPayload = (deps: Pick<Deps, "payloads">) =>
  clientStream<PutPayloadRequest, PutPayloadResponse>(async (requests, ctx) => {
    const messages = requests[Symbol.asyncIterator]();
    const { value: first } = await messages.next();
    const { putter, facts } = readHeader(first as PutPayloadRequest | undefined, ctx);
    ctx.note({ session_id: putter.sessionId, payload_bytes: facts.sizeBytes });
    const upload = await deps.payloads.begin(putter, facts, ctx.signal);
    const content = { hash: createHash("sha256"), bytes: 0 };
    let isFinishing = false;
    try {
      let nth = 0;
      for await (const piece of piecesOf(messages, facts, content)) {
        if (upload !== "stored") await deps.payloads.addPiece(upload, nth++, piece, ctx.signal);
      }
      verify(facts, content);
      if (upload === "stored") return { isDuplicate: true };
      isFinishing = true;
      const outcome = await deps.payloads.finish(putter, facts, upload, ctx.signal);
      if (outcome === "stored") discard(deps, upload);
      return { isDuplicate: outcome === "stored" };
    } catch (error) {
      // A finish whose answer was lost may be done a moment later: its content must not be taken from it.
      const mayBeDone = isFinishing && GanglionError.is(error, "DATABASE_UNAVAILABLE");
      if (upload !== "stored" && !mayBeDone) discard(deps, upload);
      throw error;
    }
  });

// What stays behind when this fails is invisible, and goes after a day.
function discard(deps: Pick<Deps, "payloads">, upload: Upload): void {
  deps.payloads.discard(upload).catch(() => {});
}

function readHeader(
  first: PutPayloadRequest | undefined,
  ctx: CallContext,
): { putter: PayloadPutter; facts: PayloadFacts } {
  if (first?.message?.$case !== "header") throw invalidField("header", "must be in the first message");
  const header = first.message.value;
  const caller = callerOf(ctx);
  checkHeader(header, caller.role === "HARNESS");
  if (header.sizeBytes > MAX_PAYLOAD_BYTES) throw tooLarge("the payload", MAX_PAYLOAD_BYTES);
  const { sessionId, payloadId, sizeBytes, sha256, contentType, epoch } = header;
  const lease = caller.role === "HARNESS" ? { owner: caller.subject, epoch: epoch ?? 0n } : null;
  return {
    putter: { sessionId, scope: scopeOf(caller), lease },
    facts: { payloadId, sizeBytes, sha256, contentType },
  };
}

function checkHeader(header: PutPayloadRequest_Header, isHarness: boolean): void {
  const violations = new Violations();
  checkId(violations, "header.session_id", header.sessionId);
  checkFacts(violations, "header", header);
  violations.check(isHarness || header.epoch === undefined, "header.epoch", "is for harnesses only");
  violations.throwIfAny();
}

interface Content {
  readonly hash: Hash;
  bytes: number;
}

// Pieces of one size, however the sender cut its messages: a sender of single bytes must not make as many rows.
async function* piecesOf(
  messages: AsyncIterator<PutPayloadRequest>,
  facts: PayloadFacts,
  content: Content,
): AsyncGenerator<Buffer> {
  const begun = performance.now();
  let piece = Buffer.allocUnsafe(Math.min(PIECE_BYTES, Number(facts.sizeBytes)));
  let used = 0;
  for (let next = await messages.next(); !next.done; next = await messages.next()) {
    const { message } = next.value;
    if (message?.$case !== "data") throw invalidField("data", "must be in every message but the first");
    const data = message.value;
    if (data.length === 0 || data.length > PIECE_BYTES)
      throw invalidField("data", `must be 1 to ${PIECE_BYTES} bytes`);
    content.bytes += data.length;
    if (content.bytes > Number(facts.sizeBytes)) throw payloadMismatch(facts.payloadId, "it is longer");
    if (performance.now() - begun > MAX_UPLOAD_MS) throw tooSlow();
    content.hash.update(data);
    for (let from = 0; from < data.length; ) {
      const taken = Math.min(piece.length - used, data.length - from);
      piece.set(data.subarray(from, from + taken), used);
      from += taken;
      used += taken;
      if (used < piece.length) continue;
      yield piece;
      const left = Number(facts.sizeBytes) - content.bytes + data.length - from;
      piece = Buffer.allocUnsafe(Math.min(PIECE_BYTES, left));
      used = 0;
    }
  }
}

function verify({ payloadId, sizeBytes, sha256 }: PayloadFacts, { bytes, hash }: Content): void {
  if (BigInt(bytes) !== sizeBytes) throw payloadMismatch(payloadId, `it has ${bytes} bytes`);
  if (Buffer.compare(hash.digest(), sha256) !== 0) throw payloadMismatch(payloadId, "its digest is another");
}

function tooSlow(): GanglionError {
  return new GanglionError({
    code: "DEADLINE_EXCEEDED",
    reason: "DEADLINE_EXCEEDED",
    message: "the upload took too long",
  });
}
