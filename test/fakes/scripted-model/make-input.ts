import type { PropertySchema, Tool } from "./messages-request.ts";

/** makeInput makes an input up that fits a tool's schema: its required strings say `topic`, its numbers are 2, 3, 4 … */
export function makeInput(tool: Tool, topic: string): object {
  const { properties = {}, required = Object.keys(properties) } = tool.input_schema ?? {};
  return Object.fromEntries(
    required.map((name, index) => [name, makeValue(properties[name] ?? {}, topic.trim(), index)]),
  );
}

function makeValue({ type, enum: choices }: PropertySchema, topic: string, index: number): unknown {
  if (choices?.length) return choices[0];
  switch (type) {
    case "number":
    case "integer":
      return index + 2;
    case "boolean":
      return true;
    case "array":
      return [];
    case "object":
      return {};
    default:
      return topic;
  }
}
