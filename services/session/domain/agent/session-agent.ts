import type { Definition } from "./definition.ts";

/** sessionAgent is the agent as a session shows and keeps it: the definition with id and version, without metadata. */
export function sessionAgent(
  agentId: string,
  version: number,
  definition: Definition,
): Record<string, unknown> {
  const { type, metadata: _metadata, ...rest } = definition;
  return { id: agentId, type, ...rest, version };
}
