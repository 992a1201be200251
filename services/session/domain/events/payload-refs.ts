import type { ContentBlock, PayloadRef } from "../../../gen/ganglion/types/v1/content.ts";
import type { Event } from "../../../gen/ganglion/types/v1/event.ts";
import { MESSAGE_BLOCKS, RESULT_BLOCKS } from "./check-content.ts";

/** A reference to content in an event. */
export interface FoundRef {
  readonly path: string;
  readonly ref: PayloadRef;
  /** The block whose document the content is; undefined when it is no block's. */
  readonly block: ContentBlock | undefined;
  /** Kinds of blocks that the emitter may send here; null = any. */
  readonly kinds: readonly string[] | null;
}

const CLIENT_KINDS: Readonly<Record<string, readonly string[]>> = {
  userMessage: MESSAGE_BLOCKS,
  userCustomToolResult: RESULT_BLOCKS,
};

/** payloadRefs finds every reference to content that the events hold, wherever a body has one. */
export function payloadRefs(path: string, events: readonly Event[]): FoundRef[] {
  const found: FoundRef[] = [];
  for (const [index, { body }] of events.entries()) {
    if (!body) continue;
    const kinds = CLIENT_KINDS[body.$case] ?? null;
    visit(body.value, (at, ref, block) => found.push({ path: `${path}[${index}]${at}`, ref, block, kinds }));
  }
  return found;
}

type Visitor = (path: string, ref: PayloadRef, block: ContentBlock | undefined) => void;

// By shape and not by type of event: a type that is added later cannot be forgotten here. Paths are put together on the
// way back from what was found: every append comes by here, and few hold a reference.
function visit(value: object, onRef: Visitor): void {
  if (value instanceof Uint8Array) return;
  if (Array.isArray(value)) {
    for (const [index, item] of value.entries()) {
      if (isObject(item)) visit(item, (at, ref, block) => onRef(`[${index}]${at}`, ref, block));
    }
    return;
  }
  if (isRef(value)) {
    onRef("", value, undefined);
    return;
  }
  const { data } = value as Partial<ContentBlock>;
  if (data?.$case === "payload") {
    onRef("", data.value, value as ContentBlock);
    return;
  }
  for (const name of Object.keys(value)) {
    const item = value[name as keyof typeof value] as unknown;
    if (isObject(item) && name !== "_unknownFields") {
      visit(item, (at, ref, block) => onRef(`.${name}${at}`, ref, block));
    }
  }
}

function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null;
}

function isRef(value: object): value is PayloadRef {
  return "payloadId" in value && "sha256" in value;
}
