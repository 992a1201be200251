import type { McpFailureKind, McpToolAnswer } from "./mcp-caller.ts";

/** What is known about the effect of a call. */
export type Effect = "completed" | "not_run" | "unknown" | "cancelled";

/** What a tool call came to. */
export interface ToolResult {
  effect: Effect;
  content: { type: string; json: string }[];
  structuredContentJson: string;
  isError: boolean;
}

/** The result for a server's answer. */
export function resultOfAnswer(answer: McpToolAnswer): ToolResult {
  return { effect: "completed", ...answer };
}

/** The answer for a call that ended, and whose result was forgotten because the log has it. */
export function forgottenResult(): ToolResult {
  return say("unknown", "The call was made and ended; what it came to is no longer kept.");
}

/** True when a failure proves that the tool did not run, and no answer of the server is worth passing on. */
export function didNotRun(failure: McpFailureKind): boolean {
  return failure === "unreachable" || failure === "redirect" || failure === "unauthorized";
}

/** The result for a failure after which the model has to decide. */
export function resultOfFailure(
  failure: McpFailureKind,
  status: number,
  rpcCode: number,
  text: string,
): ToolResult {
  switch (failure) {
    case "rpc_error":
      // -32601 method not found, -32602 invalid params: the server says that it did not begin.
      return say(rpcCode === -32601 || rpcCode === -32602 ? "not_run" : "completed", text);
    case "not_listed":
      return say("not_run", "The MCP server has no tool of that name.");
    case "not_called":
      return say("not_run", "The MCP server could not be asked for its tools, so the tool was not called.");
    case "asks_back":
      return say("unknown", "The tool asks for input in the middle of its work, which nobody here can give.");
    case "refused":
      return say("not_run", `The MCP server refused the request (HTTP ${status}).`);
    case "too_large":
      return say("completed", "The tool ran, but its answer is larger than can be passed on.");
    case "timeout":
      return say(
        "cancelled",
        "The tool did not answer in time and was cancelled; it may have done part of its work.",
      );
    case "cancelled":
      return say("cancelled", "The call was cancelled; the tool may have done part of its work.");
    default:
      return unknownResult();
  }
}

/** The result when nobody can know whether the tool took effect (law L4). */
export function unknownResult(): ToolResult {
  return say(
    "unknown",
    "The connection broke after the call was sent. It is not known whether the tool took effect.",
  );
}

function say(effect: Effect, text: string): ToolResult {
  const block = { type: "text", text: text.slice(0, 2000) };
  return {
    effect,
    content: [{ type: "text", json: JSON.stringify(block) }],
    structuredContentJson: "",
    isError: true,
  };
}
