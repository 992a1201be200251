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
  events.forEach(({ body }, index) => {
    if (!body) return;
    const kinds = CLIENT_KINDS[body.$case] ?? null;
    visit(`${path}[${index}]`, body.value, (at, ref, block) => found.push({ path: at, ref, block, kinds }));
  });
  return found;
}

type Visitor = (path: string, ref: PayloadRef, block: ContentBlock | undefined) => void;

// By shape and not by type of event: a type that is added later cannot be forgotten here.
function visit(path: string, value: unknown, onRef: Visitor): void {
  if (typeof value !== "object" || value === null || value instanceof Uint8Array) return;
  if (Array.isArray(value)) {
    value.forEach((item, index) => {
      if (typeof item === "object") visit(`${path}[${index}]`, item, onRef);
    });
    return;
  }
  if (isRef(value)) {
    onRef(path, value, undefined);
    return;
  }
  const { data } = value as Partial<ContentBlock>;
  if (data?.$case === "payload") {
    onRef(path, data.value, value as ContentBlock);
    return;
  }
  for (const name of Object.keys(value)) {
    const item = value[name as keyof typeof value] as unknown;
    if (typeof item === "object" && name !== "_unknownFields") visit(`${path}.${name}`, item, onRef);
  }
}

function isRef(value: object): value is PayloadRef {
  return "payloadId" in value && "sha256" in value;
}
