import { createHash } from "node:crypto";
import { sortedJson } from "../../common/json/sorted-json.ts";

/** What a pin covers of a tool: everything that the model or the proxy goes by. JSON as text. */
export interface ToolDefinition {
  name: string;
  description: string;
  inputSchemaJson: string;
  outputSchemaJson: string;
  annotationsJson: string;
}

/** A pin as a decision needs it. */
export interface ToolPin {
  toolName: string;
  sha256: Buffer;
  /** Another definition that the server gave since, and that nobody has approved. */
  seenSha256: Buffer | null;
  mac: Buffer;
}

/** A definition with its digest. */
export interface PinnedDefinition {
  name: string;
  /** Canonical JSON, what the digest is of. */
  definition: string;
  sha256: Buffer;
}

/** A tool that is not what was pinned. */
export interface PinChange {
  toolName: string;
  pinned: Buffer;
  seen: Buffer;
}

/**
 * The digest of a tool's definition. The order of keys is a matter of who wrote the JSON down and does not count;
 * everything else does.
 */
export function pinOf(tool: ToolDefinition): PinnedDefinition {
  const definition = sortedJson({
    annotations: parsed(tool.annotationsJson),
    description: tool.description,
    input_schema: parsed(tool.inputSchemaJson),
    name: tool.name,
    output_schema: parsed(tool.outputSchemaJson),
  });
  return { name: tool.name, definition, sha256: createHash("sha256").update(definition).digest() };
}

/** The first tool of a server that was seen changed and not been approved, if there is one. */
export function pendingChange(pins: readonly ToolPin[]): PinChange | undefined {
  const pin = pins.find(({ seenSha256 }) => seenSha256 !== null);
  return pin && { toolName: pin.toolName, pinned: pin.sha256, seen: pin.seenSha256 as Buffer };
}

function parsed(json: string): unknown {
  return json === "" ? null : JSON.parse(json);
}
