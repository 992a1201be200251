import { startMcpCounter, type TestMcpCounter } from "../mcp-counter.ts";
import { startScriptedModel, type TestModel } from "../scripted-model.ts";

/** What lies outside of the meshes and never dies: the model, and an MCP server that counts what it is made to do. */
export interface CrashWorld {
  readonly model: TestModel;
  readonly mcp: TestMcpCounter;
  stop(): Promise<void>;
}

/** startCrashWorld starts both. */
export async function startCrashWorld(): Promise<CrashWorld> {
  const [model, mcp] = await Promise.all([startScriptedModel(), startMcpCounter()]);
  return {
    model,
    mcp,
    stop: async () => {
      await Promise.all([model.stop(), mcp.stop()]);
    },
  };
}
