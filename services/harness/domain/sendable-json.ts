import { withMember } from "../../common/json/json-span.ts";
import type { ContentBlock } from "../../gen/ganglion/types/v1/content.ts";
import { blockJson } from "./text-block.ts";

// Deeper than anything that is meant; whoever reads the request may refuse it.
const MAX_DEPTH = 64;

// A block is looked through once, not once for every request that it is in.
const known = new WeakMap<ContentBlock, Uint8Array>();

/**
 * A block's document as it can be sent: byte for byte what is in the log, unless it holds a key twice or nests without
 * end. Two readers may understand such a document differently, so it is refused on its way to the model, and a session
 * with one in it could never take another turn. Then it is written anew as the last of the keys has it.
 */
export function sendableJson(block: ContentBlock): Uint8Array {
  const before = known.get(block);
  if (before) return before;
  const json = blockJson(block);
  if (!json) throw new Error(`the content of a ${block.type} block is not in the log`);
  const sendable = isPlain(json) ? json : Buffer.from(rewrite(block.type, new TextDecoder().decode(json)));
  known.set(block, sendable);
  return sendable;
}

function rewrite(type: string, json: string): string {
  const once = JSON.stringify(JSON.parse(json));
  if (isPlain(Buffer.from(once))) return once;
  if (type === "tool_use") return withMember(once, "input", "{}");
  return JSON.stringify({ type: "text", text: `[A ${type} block that nests too deeply to be shown.]` });
}

/** True when no object of a valid JSON text has a key twice and none is nested too deeply. */
function isPlain(json: Uint8Array): boolean {
  const bytes = Buffer.from(json.buffer, json.byteOffset, json.length);
  const open: (Set<string> | undefined)[] = [];
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at];
    if (byte === 0x22) {
      const end = endOfString(bytes, at);
      const keys = open.at(-1);
      if (keys && isKey(bytes, end)) {
        const key = JSON.parse(bytes.toString("utf8", at, end + 1)) as string;
        if (keys.has(key)) return false;
        keys.add(key);
      }
      at = end;
    } else if (byte === 0x7b) open.push(new Set());
    else if (byte === 0x5b) open.push(undefined);
    else if (byte === 0x7d || byte === 0x5d) open.pop();
    if (open.length > MAX_DEPTH) return false;
  }
  return true;
}

function endOfString(bytes: Buffer, start: number): number {
  let end = bytes.indexOf(0x22, start + 1);
  while (end >= 0) {
    let slashes = 0;
    while (bytes[end - 1 - slashes] === 0x5c) slashes += 1;
    if (slashes % 2 === 0) return end;
    end = bytes.indexOf(0x22, end + 1);
  }
  return bytes.length - 1;
}

function isKey(bytes: Buffer, endOfText: number): boolean {
  let at = endOfText + 1;
  while (bytes[at] === 0x20 || bytes[at] === 0x0a || bytes[at] === 0x0d || bytes[at] === 0x09) at += 1;
  return bytes[at] === 0x3a;
}
