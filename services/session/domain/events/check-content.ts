import type { Violations } from "../../../common/errors/violations.ts";
import type { ContentBlock } from "../../../gen/ganglion/types/v1/content.ts";
import { isObject, type Json, parseJson } from "../json-shape.ts";
import { MAX_DEPTH, nestsDeeper } from "../nests-deeper.ts";
import { checkPayloadRef } from "../payload-rules.ts";

/** Kinds of blocks that a client may send in a message. */
export const MESSAGE_BLOCKS: readonly string[] = ["text", "image", "document"];
/** Kinds of blocks that a client may send as a tool's result. */
export const RESULT_BLOCKS: readonly string[] = [...MESSAGE_BLOCKS, "search_result"];

const SOURCES: Readonly<Record<string, readonly string[]>> = {
  image: ["base64"],
  document: ["base64", "text"],
};
/** Sources that the provider would have to fetch: mcp-proxy refuses such a request, and with it the session (A057). */
const FETCHED: readonly unknown[] = ["url", "file"];

/**
 * checkBlock checks that a block is one JSON object of the type it says it is. Its bytes are stored as they came and
 * never written again from what was parsed. [M25, B146, B147]
 */
export function checkBlock(
  violations: Violations,
  path: string,
  block: ContentBlock | undefined,
): Json | undefined {
  if (!block) {
    violations.add(path, "is required");
    return undefined;
  }
  if (block.type === "" || block.type.length > 64)
    violations.add(`${path}.type`, "must be 1 to 64 characters");
  if (block.data?.$case === "payload") {
    // What it holds is looked at once it is known to be there.
    checkPayloadRef(violations, `${path}.payload`, block.data.value);
    return undefined;
  }
  if (block.data?.$case !== "json") {
    violations.add(`${path}.json`, "is required");
    return undefined;
  }
  const value = parseJson(block.data.value);
  if (!isObject(value)) {
    violations.add(`${path}.json`, "must be one JSON object in UTF-8");
    return undefined;
  }
  if (value.type !== block.type) violations.add(`${path}.json`, "must have the block's type");
  return value;
}

/** checkDocument checks a block's document that is stored beside the log; `kinds` are those that a client may send, null = any. */
export function checkDocument(
  violations: Violations,
  path: string,
  block: ContentBlock,
  document: Uint8Array,
  kinds: readonly string[] | null,
): void {
  const data = { $case: "json" as const, value: Buffer.from(document) };
  if (kinds && isTooDeep(violations, path, { ...block, data })) return;
  const value = checkBlock(violations, path, { ...block, data });
  if (value && kinds) checkClientKind(violations, path, block.type, value, kinds);
}

/** checkBlocks checks the blocks of a harness: any kind, at most `max`. */
export function checkBlocks(
  violations: Violations,
  path: string,
  blocks: readonly ContentBlock[],
  max: number,
): void {
  violations.count(path, blocks.length, { max });
  blocks.slice(0, max).forEach((block, index) => {
    checkBlock(violations, `${path}[${index}]`, block);
  });
}

/** checkClientBlocks checks the blocks of a client: only the kinds that work, with what they need. */
export function checkClientBlocks(
  violations: Violations,
  path: string,
  blocks: readonly ContentBlock[],
  { min, kinds }: { min: number; kinds: readonly string[] },
): void {
  violations.count(path, blocks.length, { min, max: 100 });
  blocks.slice(0, 100).forEach((block, index) => {
    const at = `${path}[${index}]`;
    const value = isTooDeep(violations, at, block) ? undefined : checkBlock(violations, at, block);
    if (value) checkClientKind(violations, at, block.type, value, kinds);
  });
}

// Looked at before anything parses it: what reads it later may recurse.
function isTooDeep(violations: Violations, path: string, { data }: ContentBlock): boolean {
  if (data?.$case !== "json" || !nestsDeeper(data.value, MAX_DEPTH)) return false;
  violations.add(`${path}.json`, `must not be nested deeper than ${MAX_DEPTH} levels`);
  return true;
}

function checkClientKind(
  violations: Violations,
  path: string,
  type: string,
  value: Json,
  kinds: readonly string[],
): void {
  if (!kinds.includes(type)) violations.add(`${path}.type`, `must be one of ${kinds.join(", ")}`);
  else checkKind(violations, `${path}.json`, type, value);
}

function checkKind(violations: Violations, path: string, kind: string, value: Json): void {
  if (kind === "text") {
    violations.check(typeof value.text === "string", `${path}.text`, "must be a string");
    return;
  }
  if (kind === "search_result") {
    violations.check(typeof value.source === "string", `${path}.source`, "must be a string");
    violations.check(typeof value.title === "string", `${path}.title`, "must be a string");
    violations.check(Array.isArray(value.content), `${path}.content`, "must be an array");
    if (Array.isArray(value.content)) checkNested(violations, `${path}.content`, value.content);
    return;
  }
  checkSource(violations, `${path}.source`, kind, value.source);
}

/** Names the first of the blocks inside a search result that would have to be fetched. */
function checkNested(violations: Violations, path: string, content: readonly unknown[]): void {
  for (const [index, block] of content.entries()) {
    if (!isObject(block) || !isObject(block.source) || !FETCHED.includes(block.source.type)) continue;
    violations.add(`${path}[${index}].source.type`, `${block.source.type} is not supported yet`);
    return;
  }
}

function checkSource(violations: Violations, path: string, kind: string, source: unknown): void {
  if (!isObject(source)) {
    violations.add(path, "must be an object");
    return;
  }
  if (FETCHED.includes(source.type)) {
    violations.add(`${path}.type`, `${source.type} is not supported yet`);
    return;
  }
  const allowed = SOURCES[kind] ?? [];
  if (typeof source.type !== "string" || !allowed.includes(source.type)) {
    violations.add(`${path}.type`, `must be one of ${allowed.join(", ")}`);
    return;
  }
  for (const key of ["media_type", "data"])
    violations.check(typeof source[key] === "string", `${path}.${key}`, "must be a string");
}
