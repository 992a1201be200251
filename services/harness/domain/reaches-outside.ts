import type { ContentBlock } from "../../gen/ganglion/types/v1/content.ts";
import { blockJson } from "./text-block.ts";

const INLINE_SOURCES = new Set<unknown>(["base64", "text", "content"]);

// A block is looked through once, not once for every request that it is in.
const known = new WeakMap<ContentBlock, boolean>();

/**
 * Says whether a block, or one inside of it, has a source that the provider would have to fetch. mcp-proxy refuses a
 * request with such a block (A057), and a session that has one in its log could never take another turn.
 */
export function reachesOutside(block: ContentBlock): boolean {
  const before = known.get(block);
  if (before !== undefined) return before;
  const json = blockJson(block);
  const found = json !== undefined && looksOutside(JSON.parse(new TextDecoder().decode(json)));
  known.set(block, found);
  return found;
}

/** No recursion, so that no nesting can exhaust the stack. */
function looksOutside(content: unknown): boolean {
  const pending = [content];
  while (pending.length > 0) {
    const value = pending.pop();
    if (typeof value !== "object" || value === null) continue;
    if (Array.isArray(value)) {
      for (const one of value) pending.push(one);
      continue;
    }
    const { type, source, content } = value as { type?: unknown; source?: unknown; content?: unknown };
    if (type === "container_upload") return true;
    if (typeof source === "object" && source !== null) {
      if (!INLINE_SOURCES.has((source as { type?: unknown }).type)) return true;
      pending.push(source);
    }
    pending.push(content);
  }
  return false;
}
