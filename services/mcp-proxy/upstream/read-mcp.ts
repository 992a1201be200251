import type { McpTool, McpToolAnswer } from "../domain/mcp-caller.ts";
import { pinOf } from "../domain/tool-pins.ts";
import { structuredText } from "./structured-text.ts";
import { UpstreamFailure } from "./upstream-failure.ts";

const MAX_NAME = 128;
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what no name may have
const CONTROL = /[\u0000-\u001f\u007f]/;

/** Reads one page of tools. One that has no name to call it by, or no schema, is left out; the others stay (B100). */
export function readTools({ tools }: Record<string, unknown>): McpTool[] {
  if (!Array.isArray(tools)) throw new UpstreamFailure("malformed");
  return tools.filter(isTool).map(({ name, description, inputSchema, outputSchema, annotations }) => {
    const definition = {
      name,
      description: typeof description === "string" ? description.toWellFormed() : "",
      inputSchemaJson: JSON.stringify(inputSchema),
      outputSchemaJson: outputSchema === undefined ? "" : JSON.stringify(outputSchema),
      annotationsJson: annotations === undefined ? "" : JSON.stringify(annotations),
    };
    return { ...definition, pin: pinOf(definition) };
  });
}

interface RawTool {
  name: string;
  description?: unknown;
  inputSchema: object;
  outputSchema?: unknown;
  annotations?: unknown;
}

function isTool(value: unknown): value is RawTool {
  if (typeof value !== "object" || value === null) return false;
  const { name, inputSchema } = value as Record<string, unknown>;
  return typeof name === "string" && isName(name) && typeof inputSchema === "object" && inputSchema !== null;
}

function isName(name: string): boolean {
  return name !== "" && name.length <= MAX_NAME && name.isWellFormed() && !CONTROL.test(name);
}

/**
 * Reads a tool's answer, and the bodies, in their pieces, in which it came. Whether its structured part fits the tool's schema is not our business: an answer without one
 * is delivered all the same (B103, B104).
 */
export function readToolAnswer(
  result: Record<string, unknown>,
  heard: readonly (readonly Buffer[])[],
): McpToolAnswer {
  const { content, structuredContent, isError } = result;
  if (content !== undefined && !Array.isArray(content)) throw new UpstreamFailure("malformed");
  if (content === undefined && structuredContent === undefined) throw new UpstreamFailure("malformed");
  const structured = () =>
    structuredText(
      structuredContent,
      heard.map((pieces) => Buffer.concat(pieces).toString("utf8")),
    );
  return {
    content: (content ?? []).map((block: unknown) => {
      const type = (block as { type?: unknown } | null)?.type;
      if (typeof type !== "string" || type === "" || type.length > 64) throw new UpstreamFailure("malformed");
      return { type, json: JSON.stringify(block) };
    }),
    structuredContentJson: structuredContent === undefined ? "" : structured(),
    isError: isError === true,
  };
}
