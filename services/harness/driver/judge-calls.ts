import { PERMISSION } from "../domain/proto-values.ts";
import type { KnownTool, ToolCatalog } from "../domain/tool-catalog.ts";
import type { AnswerBlock } from "../ports/model.ts";
import type { JudgedCall, Verdict } from "../ports/permission-evaluator.ts";
import type { DriveContext } from "./drive-context.ts";
import { stepSignal } from "./step-signal.ts";

/** What is recorded with a call about its permission. */
export interface Judgement {
  permission: (typeof PERMISSION)[keyof typeof PERMISSION];
  policy: string;
  evaluationReason: string;
  evaluator: string;
}

/**
 * Decides on the calls of an answer, by the place of their block, before the answer is written down (law L4). Only the
 * policy "auto" asks the evaluator; whatever that does other than answering in time asks a person.
 */
export async function judgeCalls(
  ctx: DriveContext,
  blocks: readonly AnswerBlock[],
  catalog: ToolCatalog,
): Promise<Map<AnswerBlock, Judgement>> {
  const judgements = new Map<AnswerBlock, Judgement>();
  const { signal, dispose } = stepSignal(ctx);
  try {
    await Promise.all(
      blocks.map(async (block) => {
        const tool = block.call && catalog.byModelName.get(block.call.name);
        if (!block.call || !tool || tool.kind === "custom") return;
        if (tool.policy === "auto")
          judgements.set(block, await judge(ctx, tool, block.call.inputJson, signal));
        else judgements.set(block, byPolicy(tool.policy));
      }),
    );
    return judgements;
  } finally {
    dispose();
  }
}

function byPolicy(policy: "always_allow" | "always_ask"): Judgement {
  const permission = policy === "always_allow" ? PERMISSION.ALLOW : PERMISSION.ASK;
  return { permission, policy, evaluationReason: "", evaluator: "" };
}

async function judge(
  ctx: DriveContext,
  tool: Exclude<KnownTool, { kind: "custom" }>,
  inputJson: string,
  signal: AbortSignal,
): Promise<Judgement> {
  const evaluator = ctx.ports.evaluator.name;
  const input = parseObject(inputJson);
  // Not an object: it will not run, and there is nothing to judge.
  const verdict = input && (await verdictOn(ctx, judgedCall(ctx, tool, input), signal));
  const by = { policy: "auto", evaluator };
  switch (verdict?.decision) {
    case "allow":
      return { ...by, permission: PERMISSION.ALLOW, evaluationReason: "" };
    case "deny":
      return { ...by, permission: PERMISSION.DENY, evaluationReason: verdict.reason };
    default:
      return { ...by, permission: PERMISSION.ASK, evaluationReason: "indeterminate" };
  }
}

/** The evaluator's answer; undefined when there was none in time, or none that means anything. */
async function verdictOn(
  ctx: DriveContext,
  call: JudgedCall,
  signal: AbortSignal,
): Promise<Verdict | undefined> {
  const limit = new AbortController();
  const timer = setTimeout(() => limit.abort(), ctx.patience.evaluatorMs);
  const over = AbortSignal.any([signal, limit.signal]);
  const stopped = Promise.withResolvers<undefined>();
  over.addEventListener("abort", () => stopped.resolve(undefined), { once: true });
  if (over.aborted) stopped.resolve(undefined);
  try {
    const asked = (async () => ctx.ports.evaluator.evaluate(call, over))();
    const verdict = await Promise.race([asked, stopped.promise]);
    const known = toVerdict(verdict);
    if (!known && !signal.aborted) ctx.logger.warn({ tool: call.name }, "the evaluator gave no answer");
    return known;
  } catch (error) {
    ctx.logger.warn({ err: error, tool: call.name }, "the evaluator failed");
    return undefined;
  } finally {
    clearTimeout(timer);
    stopped.resolve(undefined);
  }
}

/** The answer comes from code that is not ours: each field is read once, and what is unknown means nothing. */
function toVerdict(answer: unknown): Verdict | undefined {
  if (typeof answer !== "object" || answer === null) return undefined;
  const { decision, reason } = answer as Record<string, unknown>;
  if (decision === "allow" || decision === "ask") return { decision };
  if (decision !== "deny") return undefined;
  return { decision, reason: reason === "high_risk" ? reason : "indeterminate" };
}

function judgedCall(
  ctx: DriveContext,
  tool: Exclude<KnownTool, { kind: "custom" }>,
  input: Record<string, unknown>,
): JudgedCall {
  const { state, lease } = ctx.log;
  const isMcp = tool.kind === "mcp";
  return {
    kind: tool.kind,
    name: tool.name,
    serverName: isMcp ? tool.serverName : "",
    input,
    annotations: isMcp ? annotationsOf(ctx, tool.serverName, tool.name) : {},
    session: {
      sessionId: lease.sessionId,
      workspaceId: lease.workspaceId,
      isSelfHosted: state.isSelfHosted,
    },
  };
}

function annotationsOf(ctx: DriveContext, serverName: string, name: string): Record<string, unknown> {
  const known = ctx.log.state.mcpTools.get(serverName)?.find((tool) => tool.name === name);
  return parseObject(Buffer.from(known?.annotationsJson ?? []).toString("utf8")) ?? {};
}

function parseObject(json: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(json);
    return typeof value === "object" && value !== null && !Array.isArray(value)
      ? (value as Record<string, unknown>)
      : undefined;
  } catch {
    return undefined;
  }
}
