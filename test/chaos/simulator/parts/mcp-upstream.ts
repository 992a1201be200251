import type {
  McpCaller,
  McpFailureKind,
  McpOutcome,
  McpTool,
  McpToolAnswer,
} from "../../../../services/mcp-proxy/domain/mcp-caller.ts";
import { pinOf } from "../../../../services/mcp-proxy/domain/tool-pins.ts";
import type { Network } from "../core/network.ts";
import type { SimProcess } from "../core/virtual-time.ts";
import { type Effects, scriptOf } from "./effects.ts";

const COUNTERS = { status: 200, responseBytes: 10, redactions: 0, isReleased: true };
const TOOLS: McpTool[] = ["act", "look"].map((name) => {
  const definition = {
    name,
    description: `Does ${name}.`,
    inputSchemaJson: '{"type":"object"}',
    outputSchemaJson: "",
    annotationsJson: JSON.stringify({ readOnlyHint: name === "look" }),
  };
  return { ...definition, pin: pinOf(definition) };
});

/** The tool that may be run again: it is annotated read-only. */
export const REPEATABLE = "look";

/**
 * An MCP server somewhere outside, as one boot of the proxy calls it. What was sent takes its effect there whatever
 * becomes of the proxy.
 */
export function mcpUpstream(
  proxy: SimProcess,
  world: { network: Network; effects: Effects; outside: SimProcess },
): McpCaller {
  const { network, effects, outside } = world;
  return {
    listTools: async (_target, signal) => {
      const fate = network.fateOf(proxy.name, outside.name);
      await wait(proxy, fate.kind === "arrives" ? fate.inMs : fate.brokenInMs, signal);
      return fate.kind === "arrives" ? { ok: true, value: TOOLS, counters: COUNTERS } : failed("unreachable");
    },
    callTool: (_target, call, signal) => callTool(proxy, outside, network, effects, call, signal),
    isRepeatable: (_target, toolName) => toolName === REPEATABLE,
    haveToolsChanged: () => false,
    drop: () => {},
    close: async () => {},
  };
}

function callTool(
  proxy: SimProcess,
  outside: SimProcess,
  network: Network,
  effects: Effects,
  call: { name: string; inputJson: string },
  signal: AbortSignal,
): Promise<McpOutcome<McpToolAnswer>> {
  const script = scriptOf(call.inputJson);
  if (!script) return Promise.resolve(failed("refused"));
  const { promise, resolve } = Promise.withResolvers<McpOutcome<McpToolAnswer>>();
  const { time } = network;
  const tell = (outcome: McpOutcome<McpToolAnswer>, inMs: number): void => {
    time.at(time.now + inMs, () => proxy.deliver(() => resolve(outcome)));
  };
  signal.addEventListener("abort", () => resolve(failed("cancelled")));
  const going = network.fateOf(proxy.name, outside.name);
  if (going.kind === "lost") {
    // Sometimes it is certain that nothing was sent, sometimes not.
    tell(failed(network.random.chance(0.5) ? "unreachable" : "broken"), going.brokenInMs);
    return promise;
  }
  time.at(time.now + going.inMs + script.beforeMs, () => {
    effects.take(script.nonce);
    const coming = network.fateOf(outside.name, proxy.name);
    if (coming.kind === "lost") return tell(failed("broken"), script.afterMs + coming.brokenInMs);
    const text = JSON.stringify({ type: "text", text: `did ${script.nonce}` });
    const value = { content: [{ type: "text", json: text }], structuredContentJson: "", isError: false };
    tell({ ok: true, value, counters: COUNTERS }, script.afterMs + coming.inMs);
  });
  return promise;
}

function failed<T>(failure: McpFailureKind): McpOutcome<T> {
  return {
    ok: false,
    failure,
    rpcCode: 0,
    text: failure,
    counters: { ...COUNTERS, status: 0, isReleased: false },
  };
}

function wait(process: SimProcess, ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    process.timer(ms, resolve);
    signal.addEventListener("abort", () => resolve());
  });
}
