import { isObject, type Json, type Shape } from "../json-shape.ts";
import type { McpServer, Tool } from "./definition.ts";
import { BUILT_IN_TOOLS, resolveAgentToolset, resolveMcpToolset } from "./resolve-toolset.ts";

const TOOL_TYPES = ["agent_toolset_20260401", "mcp_toolset", "custom"] as const;
const PROPERTY_NAME = /^[A-Za-z0-9_.-]{1,64}$/;
const TOOL_NAME = /^[A-Za-z0-9_-]{1,128}$/;

/** resolveTools fills in every tool entry and checks that tools and MCP servers belong together. */
export function resolveTools(
  shape: Shape,
  path: string,
  value: unknown,
  servers: readonly McpServer[],
): Tool[] {
  const tools: Tool[] = [];
  const seen = new Set<string>();
  shape.array(path, value, 256).forEach((entry, index) => {
    const at = `${path}[${index}]`;
    const type = shape.oneOf(`${at}.type`, isObject(entry) ? entry.type : undefined, TOOL_TYPES);
    if (!type) return;
    const tool = resolveTool(shape, at, type, entry as Json);
    const key = `${type} ${String(tool.mcp_server_name ?? tool.name ?? "")}`;
    if (seen.has(key)) shape.wrong(at, "is there twice");
    seen.add(key);
    tools.push(tool);
  });
  const names = new Set(servers.map(({ name }) => name));
  tools.forEach((tool, index) => {
    if (
      tool.type === "mcp_toolset" &&
      !names.delete(tool.mcp_server_name as string) &&
      !hasServer(servers, tool)
    ) {
      shape.wrong(`${path}[${index}].mcp_server_name`, "is not one of mcp_servers");
    }
  });
  servers.forEach(({ name }, index) => {
    if (names.has(name)) {
      shape.wrong(`${path.replace(/tools$/, "mcp_servers")}[${index}].name`, "is used by no mcp_toolset");
    }
  });
  return tools;
}

/** resolveMcpServers checks the servers that an agent names. */
export function resolveMcpServers(shape: Shape, path: string, value: unknown): McpServer[] {
  const names = new Set<string>();
  return shape.array(path, value, 20).flatMap((entry, index) => {
    const at = `${path}[${index}]`;
    const server = shape.object(at, entry, ["type", "name", "url"]);
    if (!server) return [];
    shape.oneOf(`${at}.type`, server.type, ["url"]);
    const name = shape.string(`${at}.name`, server.name, { min: 1, max: 255 }) ?? "";
    if (names.has(name)) shape.wrong(`${at}.name`, "is not unique");
    names.add(name);
    const url = shape.string(`${at}.url`, server.url, { min: 1, max: 2048 }) ?? "";
    if (url !== "" && !isServerUrl(url)) {
      shape.wrong(`${at}.url`, "must be an http or https URL without user name, password and fragment");
    }
    return [{ type: "url" as const, name, url }];
  });
}

function hasServer(servers: readonly McpServer[], tool: Tool): boolean {
  return servers.some(({ name }) => name === tool.mcp_server_name);
}

function resolveTool(shape: Shape, path: string, type: (typeof TOOL_TYPES)[number], tool: Json): Tool {
  if (type === "agent_toolset_20260401") return resolveAgentToolset(shape, path, tool);
  if (type === "mcp_toolset") return resolveMcpToolset(shape, path, tool);
  return resolveCustomTool(shape, path, tool);
}

function resolveCustomTool(shape: Shape, path: string, tool: Json): Tool {
  shape.object(path, tool, ["type", "name", "description", "input_schema"]);
  const name = shape.string(`${path}.name`, tool.name, { min: 1, max: 128 }) ?? "";
  if (name !== "" && !TOOL_NAME.test(name))
    shape.wrong(`${path}.name`, "may have letters, digits, _ and - only");
  if ((BUILT_IN_TOOLS as readonly string[]).includes(name))
    shape.wrong(`${path}.name`, "is a built-in tool's name");
  if (name.startsWith("mcp__")) shape.wrong(`${path}.name`, "must not begin with mcp__");
  const description = shape.string(`${path}.description`, tool.description, { min: 1, max: 65_536 }) ?? "";
  checkInputSchema(shape, `${path}.input_schema`, tool.input_schema);
  return { type: "custom", name, description, input_schema: tool.input_schema };
}

function checkInputSchema(shape: Shape, path: string, schema: unknown): void {
  if (!isObject(schema)) {
    shape.wrong(path, "must be an object");
    return;
  }
  if (schema.type !== "object") shape.wrong(`${path}.type`, "must be object");
  for (const key of ["oneOf", "anyOf", "allOf"]) {
    if (key in schema) shape.wrong(`${path}.${key}`, "is not allowed at the top level");
  }
  const { properties, required } = schema;
  if (properties !== undefined && properties !== null) {
    if (!isObject(properties)) shape.wrong(`${path}.properties`, "must be an object");
    else if (Object.keys(properties).some((name) => !PROPERTY_NAME.test(name))) {
      shape.wrong(`${path}.properties`, "has a name that is not 1 to 64 letters, digits, _ . -");
    }
  }
  const isList = Array.isArray(required) && required.every((name) => typeof name === "string");
  if (required !== undefined && required !== null && !isList) {
    shape.wrong(`${path}.required`, "must be an array of strings");
  }
  if (hasReference(schema, 0))
    shape.wrong(path, "must not contain $ref and must not nest deeper than 64 levels");
}

function hasReference(value: unknown, depth: number): boolean {
  if (depth > 64) return true;
  if (Array.isArray(value)) return value.some((entry) => hasReference(entry, depth + 1));
  if (!isObject(value)) return false;
  return Object.entries(value).some(([key, entry]) => key === "$ref" || hasReference(entry, depth + 1));
}

function isServerUrl(text: string): boolean {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (!url || !/^https?:$/.test(url.protocol)) return false;
  return url.username === "" && url.password === "" && url.hash === "";
}
