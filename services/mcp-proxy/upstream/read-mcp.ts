import type { ListToolsResult } from "@modelcontextprotocol/sdk/types.js";
import type { McpTool, McpToolAnswer } from "../domain/mcp-caller.ts";
import { pinOf } from "../domain/tool-pins.ts";
import { UpstreamFailure } from "./upstream-failure.ts";

const MAX_NAME = 128;
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what no name may have
const CONTROL = /[\u0000-\u001f\u007f]/;

/** Reads one page of tools. One whose name nobody could call it by is left out. */
export function readTools(result: ListToolsResult): McpTool[] {
  return result.tools
    .filter(({ name }) => isName(name))
    .map((tool) => {
      const definition = {
        name: tool.name,
        description: (tool.description ?? "").toWellFormed(),
        inputSchemaJson: JSON.stringify(tool.inputSchema),
        outputSchemaJson: tool.outputSchema === undefined ? "" : JSON.stringify(tool.outputSchema),
        annotationsJson: tool.annotations === undefined ? "" : JSON.stringify(tool.annotations),
      };
      return { ...definition, pin: pinOf(definition) };
    });
}

function isName(name: string): boolean {
  return name !== "" && name.length <= MAX_NAME && name.isWellFormed() && !CONTROL.test(name);
}

/**
 * Reads a tool's answer. Whether its structured part fits the tool's schema is not our business: an answer without one
 * is delivered all the same (B103, B104).
 */
export function readToolAnswer(result: Record<string, unknown>): McpToolAnswer {
  const { content, structuredContent, isError } = result;
  if (content !== undefined && !Array.isArray(content)) throw new UpstreamFailure("malformed");
  if (content === undefined && structuredContent === undefined) throw new UpstreamFailure("malformed");
  return {
    content: (content ?? []).map((block: unknown) => {
      const type = (block as { type?: unknown } | null)?.type;
      if (typeof type !== "string" || type === "" || type.length > 64) throw new UpstreamFailure("malformed");
      return { type, json: JSON.stringify(block) };
    }),
    structuredContentJson: structuredContent === undefined ? "" : JSON.stringify(structuredContent),
    isError: isError === true,
  };
}
