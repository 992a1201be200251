import { createHash } from "node:crypto";
import { GanglionError } from "../../common/errors/ganglion-error.ts";
import type { CallOptions } from "../../common/grpc/create-client.ts";
import type { PutPayloadRequest } from "../../gen/ganglion/session/v1/session_service.ts";
import type { ContentBlock, PayloadRef } from "../../gen/ganglion/types/v1/content.ts";
import type { Event } from "../../gen/ganglion/types/v1/event.ts";
import type { RestDeps } from "./rest-deps.ts";

/** Blocks above this are stored beside the log, so that an event stays small. */
const LARGE_BYTES = 256 * 1024;
const PIECE_BYTES = 1 << 20;
/** Contents that one answer may carry; what is beyond shows its first words. */
const MAX_ANSWER_BYTES = 64 << 20;

type Sessions = Pick<RestDeps["sessions"], "putPayload" | "getPayload">;

/** Stores the large blocks of a client's events beside the log; the events then carry references to them. */
export async function storeLargeBlocks(
  sessions: Sessions,
  sessionId: string,
  events: readonly Event[],
  call: CallOptions,
): Promise<Event[]> {
  return mapBlocks(events, async (block) => {
    if (block.data?.$case !== "json" || block.data.value.length <= LARGE_BYTES) return block;
    const ref = await store(sessions, sessionId, block.data.value, call);
    return { type: block.type, data: { $case: "payload", value: ref } };
  });
}

/** Puts the stored blocks back into events, so that a client reads what it sent. */
export async function restoreLargeBlocks(
  sessions: Sessions,
  sessionId: string,
  events: readonly Event[],
  call: CallOptions,
): Promise<Event[]> {
  let left = MAX_ANSWER_BYTES;
  return mapBlocks(events, async (block) => {
    if (block.data?.$case !== "payload" || block.data.value.sizeBytes > BigInt(left)) return block;
    const { value: ref } = block.data;
    left -= Number(ref.sizeBytes);
    return { type: block.type, data: { $case: "json", value: await load(sessions, sessionId, ref, call) } };
  });
}

type Change = (block: ContentBlock) => Promise<ContentBlock>;

// One after the other: contents are large, and a page of them must not be in flight all at once.
async function mapBlocks(events: readonly Event[], change: Change): Promise<Event[]> {
  const changed: Event[] = [];
  for (const event of events) changed.push(await mapEvent(event, change));
  return changed;
}

async function mapEvent(event: Event, change: Change): Promise<Event> {
  const { body } = event;
  switch (body?.$case) {
    case "userMessage":
    case "userCustomToolResult":
    case "userToolResult": {
      const content = await all(body.value.content, change);
      return { ...event, body: { ...body, value: { ...body.value, content } } as Event["body"] };
    }
    case "agentMessage": {
      const block = body.value.block && (await change(body.value.block));
      return { ...event, body: { ...body, value: { ...body.value, block } } };
    }
    default:
      return event;
  }
}

async function all(blocks: readonly ContentBlock[], change: Change): Promise<ContentBlock[]> {
  const changed: ContentBlock[] = [];
  for (const block of blocks) changed.push(await change(block));
  return changed;
}

async function store(
  sessions: Sessions,
  sessionId: string,
  bytes: Buffer,
  call: CallOptions,
): Promise<PayloadRef> {
  const sha256 = createHash("sha256").update(bytes).digest();
  // Follows from the content: sent again, it is the same payload.
  const payloadId = `pld_${sha256.toString("hex").slice(0, 48)}`;
  const facts = { payloadId, sizeBytes: BigInt(bytes.length), sha256, contentType: "application/json" };
  const pieces = function* (): Generator<PutPayloadRequest> {
    yield { message: { $case: "header", value: { sessionId, ...facts, epoch: undefined } } };
    for (let at = 0; at < bytes.length; at += PIECE_BYTES) {
      yield { message: { $case: "data", value: bytes.subarray(at, at + PIECE_BYTES) } };
    }
  };
  await sessions.putPayload(pieces(), call);
  return { ...facts, excerpt: excerptOf(bytes) };
}

async function load(
  sessions: Sessions,
  sessionId: string,
  { payloadId, sizeBytes, sha256 }: PayloadRef,
  call: CallOptions,
): Promise<Buffer> {
  const pieces: Buffer[] = [];
  let size = 0n;
  for await (const { data } of sessions.getPayload({ sessionId, payloadId, offsetBytes: 0n }, call)) {
    size += BigInt(data.length);
    if (size > sizeBytes) break;
    pieces.push(data);
  }
  const bytes = Buffer.concat(pieces);
  if (size === sizeBytes && createHash("sha256").update(bytes).digest().equals(sha256)) return bytes;
  throw new GanglionError({
    code: "DATA_LOSS",
    reason: "PAYLOAD_MISMATCH",
    message: "a stored content is not what its event says",
  });
}

/** The first words of a text; base64 tells a reader nothing. */
function excerptOf(bytes: Buffer): string {
  const { type, text } = JSON.parse(bytes.toString("utf8")) as { type?: unknown; text?: unknown };
  return type === "text" && typeof text === "string" ? text.slice(0, 500).toWellFormed() : "";
}
