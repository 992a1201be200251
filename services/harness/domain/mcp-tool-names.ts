import { sha256Hex } from "./sha256.ts";

const LIMIT = 64;

/**
 * Name under which the model sees an MCP tool. Made from server and tool alone, so it does not depend on what else
 * there is or in which order servers answer (B097): `mcp__server__tool`, and where that is too long or has other
 * characters, what is left of it with a digest of both names.
 */
export function mcpModelName(serverName: string, toolName: string): string {
  const plain = `mcp__${serverName}__${toolName}`;
  // "__" inside a name would let two pairs of names meet in one.
  const isPlain = /^[A-Za-z0-9_-]+$/.test(plain) && !serverName.includes("__") && !toolName.includes("__");
  if (isPlain && plain.length <= LIMIT) return plain;
  const digest = sha256Hex(`${serverName}\u0000${toolName}`).slice(0, 12);
  const readable = plain.replaceAll(/[^A-Za-z0-9_-]/g, "_").slice(0, LIMIT - digest.length - 1);
  return `${readable}_${digest}`;
}
