import { reachesOutside } from "../../common/content/reaches-outside.ts";
import type { ContentBlock } from "../../gen/ganglion/types/v1/content.ts";
import { blockJson } from "./text-block.ts";

// A block is looked through once, not once for every request that it is in.
const known = new WeakMap<ContentBlock, boolean>();

/**
 * Says whether a block has a source that the provider would have to fetch. mcp-proxy refuses a request with such a block
 * (A057), and a session that has one in its log could never take another turn.
 */
export function isFetched(block: ContentBlock): boolean {
  const before = known.get(block);
  if (before !== undefined) return before;
  const json = blockJson(block);
  const found = json !== undefined && reachesOutside(JSON.parse(new TextDecoder().decode(json)));
  known.set(block, found);
  return found;
}
