import type { GanglionError } from "../../../common/errors/ganglion-error.ts";
import { Violations } from "../../../common/errors/violations.ts";
import type { PayloadRef } from "../../../gen/ganglion/types/v1/content.ts";
import type { Event } from "../../../gen/ganglion/types/v1/event.ts";
import { payloadMismatch, payloadNotFound, sessionNotFound, tooLarge } from "../../domain/errors.ts";
import { checkDocument } from "../../domain/events/check-content.ts";
import { type FoundRef, payloadRefs } from "../../domain/events/payload-refs.ts";
import {
  type KeptPayload,
  type PayloadOwner,
  type PayloadStore,
  PIECE_BYTES,
} from "../../ports/payload-store.ts";

// Documents are read to be checked: those of one call may have this many bytes together.
const MAX_DOCUMENTS_BYTES = 64 << 20;

/**
 * checkPayloads makes sure, before events are appended, that the session has the content that they name and that it is
 * what they say. From then on the content stays as long as the session, even when the append is refused. What is a
 * block's document is held against the same rules as one inside the event.
 */
export async function checkPayloads(
  payloads: PayloadStore,
  owner: PayloadOwner,
  events: readonly Event[],
  signal: AbortSignal,
): Promise<void> {
  const refs = payloadRefs("events", events);
  if (refs.length === 0) return;
  const ids = [...new Set(refs.map(({ ref }) => ref.payloadId))];
  const kept = new Map(
    (await payloads.keep(owner, ids, signal)).map((payload) => [payload.payloadId, payload]),
  );
  for (const { ref } of refs) {
    const payload = kept.get(ref.payloadId);
    if (!payload) throw await absent(payloads, owner, ref.payloadId, signal);
    if (!isWhatIsSaid(ref, payload)) {
      throw payloadMismatch(ref.payloadId, "size, digest or media type are others than what was stored");
    }
  }
  await checkDocuments(payloads, refs, kept, signal);
}

async function absent(
  payloads: PayloadStore,
  owner: PayloadOwner,
  payloadId: string,
  signal: AbortSignal,
): Promise<GanglionError> {
  const found = await payloads.find(owner, payloadId, signal);
  return found === undefined ? sessionNotFound(owner.sessionId) : payloadNotFound(payloadId);
}

function isWhatIsSaid(ref: PayloadRef, payload: KeptPayload): boolean {
  return (
    ref.sizeBytes === payload.sizeBytes &&
    ref.contentType === payload.contentType &&
    Buffer.compare(ref.sha256, payload.sha256) === 0
  );
}

// One document in memory at a time.
async function checkDocuments(
  payloads: PayloadStore,
  refs: readonly FoundRef[],
  kept: ReadonlyMap<string, KeptPayload>,
  signal: AbortSignal,
): Promise<void> {
  const blocks = refs.filter(({ block }) => block !== undefined);
  const bytes = blocks.reduce((sum, { ref }) => sum + Number(ref.sizeBytes), 0);
  if (bytes > MAX_DOCUMENTS_BYTES) throw tooLarge("what the events name, together,", MAX_DOCUMENTS_BYTES);
  const violations = new Violations();
  for (const { path, ref, block, kinds } of blocks) {
    const payload = kept.get(ref.payloadId);
    if (!payload || !block) continue;
    const document = await readAll(payloads, payload, signal);
    checkDocument(violations, path, block, document, kinds);
  }
  violations.throwIfAny();
}

async function readAll(payloads: PayloadStore, payload: KeptPayload, signal: AbortSignal): Promise<Buffer> {
  const size = Number(payload.sizeBytes);
  const document = Buffer.allocUnsafe(size);
  for (let at = 0; at < size; at += PIECE_BYTES) {
    const piece = await payloads.readPiece(payload.upload, at / PIECE_BYTES, 0, signal);
    if (!piece) throw payloadNotFound(payload.payloadId);
    document.set(piece, at);
  }
  return document;
}
