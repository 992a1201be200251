// Sources whose bytes are in the document itself. Others ("url", "file") make the provider fetch for the caller.
const INLINE_SOURCES = new Set<unknown>(["base64", "text", "content"]);

/**
 * Says whether messages or blocks, or anything in their contents and sources, would make the model's provider fetch
 * something (A057). What sends a request and what judges it ask the same question here, so that they cannot differ. No
 * recursion, so that no nesting can exhaust the stack; each value is looked at once.
 */
export function reachesOutside(content: unknown): boolean {
  const pending = [content];
  while (pending.length > 0) {
    const value = pending.pop();
    if (typeof value !== "object" || value === null) continue;
    if (Array.isArray(value)) {
      for (const one of value) pending.push(one);
      continue;
    }
    const block = value as { type?: unknown; source?: unknown; content?: unknown };
    if (block.type === "container_upload") return true;
    if (typeof block.source === "object" && block.source !== null) {
      if (!INLINE_SOURCES.has((block.source as { type?: unknown }).type)) return true;
      pending.push(block.source);
    }
    pending.push(block.content);
  }
  return false;
}
