import { Violations } from "../../common/errors/violations.ts";
import type { CallContext } from "../../common/grpc/call-context.ts";
import type { ExecuteRequest, ExecuteResponse } from "../../gen/ganglion/sandbox/v1/sandbox_service.ts";
import type { Duration } from "../../gen/google/protobuf/duration.ts";
import type { ExecuteCommand } from "../domain/executions.ts";
import { checkEpoch, checkHandId, checkKey, checkSessionId } from "./check-fields.ts";
import { mapExecution } from "./map-execution.ts";
import type { SandboxDeps } from "./sandbox-deps.ts";

const MAX_INPUT_BYTES = 2 * 1024 * 1024;
const DEFAULT_TIMEOUT_MS = 120_000;
const MAX_TIMEOUT_MS = 600_000;
const MAX_KEYS = 1000;

/** execute runs one tool call, or says what became of it. */
export async function execute(
  request: ExecuteRequest,
  ctx: CallContext,
  deps: SandboxDeps,
): Promise<ExecuteResponse> {
  const command = parseExecute(request);
  ctx.note({ hand_id: command.handId, call: command.key, tool: toolLabel(command.name, deps.offer().tools) });
  const { sessionId } = command;
  await deps.leases.admit({ sessionId, epoch: request.epoch, caller: ctx.principal.spiffeId }, ctx.signal);
  deps.executions.acknowledge(sessionId, request.acknowledgedKeys);
  const view = await deps.executions.execute(command);
  if (!view.isReplayed) deps.metrics.countExecution(view.result.outcome);
  ctx.note({ outcome: view.result.outcome, is_replayed: view.isReplayed });
  return { execution: mapExecution(view) };
}

function parseExecute(request: ExecuteRequest): ExecuteCommand {
  const { sessionId, handId, key, epoch, name, inputJson, timeout, acknowledgedKeys } = request;
  const violations = new Violations();
  checkSessionId(violations, sessionId);
  checkHandId(violations, handId);
  checkKey(violations, key);
  checkEpoch(violations, epoch);
  violations.string("name", name, { required: true, maxLength: 128 });
  violations.bytes("input_json", inputJson, { required: true, maxBytes: MAX_INPUT_BYTES });
  const timeoutMs = parseTimeout(violations, timeout);
  violations.check(
    acknowledgedKeys.length <= MAX_KEYS && acknowledgedKeys.every((known) => known.length <= 64),
    "acknowledged_keys",
    "must be at most 1,000 keys",
  );
  violations.throwIfAny();
  return { sessionId, handId, key, name, inputJson: inputJson.toString("utf8"), timeoutMs };
}

function parseTimeout(violations: Violations, timeout: Duration | undefined): number {
  if (!timeout) return DEFAULT_TIMEOUT_MS;
  const ms = Number(timeout.seconds) * 1_000 + Math.ceil(timeout.nanos / 1_000_000);
  violations.check(ms >= 1 && ms <= MAX_TIMEOUT_MS, "timeout", "must be from 1 ms to 600 s");
  return ms;
}

/** The name comes from a model: only one that we know may get into the log. */
function toolLabel(name: string, tools: readonly string[]): string {
  return tools.includes(name) ? name : "unknown";
}
