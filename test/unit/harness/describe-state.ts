import type { ContentBlock } from "../../../services/gen/ganglion/types/v1/content.ts";
import type { Call, SessionState } from "../../../services/harness/domain/session-state.ts";

/** A state as a person would tell it, for golden files. */
export function describeState(state: SessionState): unknown {
  const { turns, queued, openCalls, openSpan, agent, mcpTools, sandboxAddrs, failedMcpServers, ...rest } =
    state;
  const { spending, strategy, askedStrategy, summary, promise, reported, repositories, ...plain } = rest;
  return {
    ...plain,
    ...(repositories.length > 0 ? { repositories } : {}),
    ...(spending.price || spending.limit !== null ? { spending } : {}),
    turns: turns.map((turn) =>
      turn.kind === "user"
        ? { user: turn.content.map(text), position: turn.position }
        : { assistant: turn.blocks.map(text), stopReason: turn.stopReason, calls: turn.calls.map(call) },
    ),
    queued: queued.map((turn) => ({ position: turn.position, content: turn.content.map(text) })),
    strategy: (strategy ?? askedStrategy)?.name,
    ...(summary ? { summary: text(summary.block), summaryThrough: summary.throughPosition } : {}),
    promisedBytes: promise?.bytes,
    reportedTokens: reported?.tokens,
    openCalls: [...openCalls.keys()],
    openSpan: openSpan && { id: openSpan.id, attempt: openSpan.attempt, blocks: openSpan.blocks.length },
    model: agent?.model,
    mcpTools: [...mcpTools].map(([server, tools]) => [server, tools.map((tool) => tool.modelName)]),
    sandboxAddrs: [...sandboxAddrs],
    failedMcpServers: [...failedMcpServers],
  };
}

function call({ inputJson, result, ...rest }: Call): unknown {
  return {
    ...rest,
    input: Buffer.from(inputJson).toString("utf8"),
    ...(result ? { result: { ...result, content: result.content.map(text) } } : {}),
  };
}

function text(block: ContentBlock): string {
  return block.data?.$case === "json" ? block.data.value.toString("utf8") : "(stored beside the log)";
}
