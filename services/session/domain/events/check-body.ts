import type { Violations } from "../../../common/errors/violations.ts";
import type { PayloadRef } from "../../../gen/ganglion/types/v1/content.ts";
import type { Event } from "../../../gen/ganglion/types/v1/event.ts";
import { checkPayloadRef } from "../payload-rules.ts";
import {
  checkBlock,
  checkBlocks,
  checkClientBlocks,
  MESSAGE_BLOCKS,
  RESULT_BLOCKS,
} from "./check-content.ts";
import { checkReference } from "./check-reference.ts";
import { checkSessionBody } from "./check-session-body.ts";

type Body = NonNullable<Event["body"]>;

const MAX_RESULT_BLOCKS = 1000;
const LAST_OUTCOME = 4;

/** checkBody checks what an event says against the bounds in its message's comments; fields are named below `path`. */
export function checkBody(violations: Violations, path: string, body: Body): void {
  const at = (field: string) => `${path}.${field}`;
  switch (body.$case) {
    case "userMessage":
      checkClientBlocks(violations, at("user_message.content"), body.value.content, {
        min: 1,
        kinds: MESSAGE_BLOCKS,
      });
      return;
    case "userInterrupt":
      // No other thread exists yet that could be meant.
      violations.check(
        body.value.sessionThreadId === "",
        at("user_interrupt.session_thread_id"),
        "is not known",
      );
      return;
    case "userToolConfirmation": {
      const { toolUseId, result, denyMessage } = body.value;
      const name = at("user_tool_confirmation");
      checkReference(violations, `${name}.tool_use_id`, toolUseId);
      violations.check(result === 1 || result === 2, `${name}.result`, "must be allow or deny");
      if (denyMessage === undefined) return;
      violations.check(result !== 1, `${name}.deny_message`, "is for denials only");
      violations.string(`${name}.deny_message`, denyMessage, { maxLength: 4096 });
      return;
    }
    case "userCustomToolResult": {
      const name = at("user_custom_tool_result");
      checkReference(violations, `${name}.custom_tool_use_id`, body.value.customToolUseId);
      checkClientBlocks(violations, `${name}.content`, body.value.content, { min: 0, kinds: RESULT_BLOCKS });
      return;
    }
    case "agentMessage":
      checkModelBlock(violations, at("agent_message"), body.value);
      return;
    case "agentThinking":
      checkModelBlock(violations, at("agent_thinking"), body.value);
      return;
    case "ganglionProviderBlock":
      checkModelBlock(violations, at("ganglion_provider_block"), body.value);
      return;
    case "agentToolUse":
      checkToolUse(violations, at("agent_tool_use"), body.value);
      checkPermission(violations, at("agent_tool_use"), body.value);
      return;
    case "agentMcpToolUse":
      checkToolUse(violations, at("agent_mcp_tool_use"), body.value);
      checkPermission(violations, at("agent_mcp_tool_use"), body.value);
      violations.string(at("agent_mcp_tool_use.mcp_server_name"), body.value.mcpServerName, {
        required: true,
        maxLength: 255,
      });
      return;
    case "agentCustomToolUse":
      checkToolUse(violations, at("agent_custom_tool_use"), body.value);
      return;
    case "agentToolResult":
      checkReference(violations, at("agent_tool_result.tool_use_id"), body.value.toolUseId);
      checkResult(violations, at("agent_tool_result"), body.value);
      return;
    case "agentMcpToolResult":
      checkReference(violations, at("agent_mcp_tool_result.mcp_tool_use_id"), body.value.mcpToolUseId);
      checkResult(violations, at("agent_mcp_tool_result"), body.value);
      return;
    case "ganglionLateToolResult":
      checkReference(violations, at("ganglion_late_tool_result.tool_use_id"), body.value.toolUseId);
      checkBlocks(violations, at("ganglion_late_tool_result.content"), body.value.content, MAX_RESULT_BLOCKS);
      return;
    case "open":
      // Its type was checked where types are.
      violations.string(at("open.content_type"), body.value.contentType, { maxLength: 127 });
      return;
    default:
      checkSessionBody(violations, path, body);
  }
}

interface FromModel {
  block?: Parameters<typeof checkBlock>[2];
  modelRequestStartId: string;
  blockIndex: number;
}

function checkModelBlock(violations: Violations, path: string, value: FromModel): void {
  checkBlock(violations, `${path}.block`, value.block);
  checkReference(violations, `${path}.model_request_start_id`, value.modelRequestStartId);
  violations.integer(`${path}.block_index`, value.blockIndex, { min: 0 });
}

interface ToolUse extends FromModel {
  name: string;
  inputJson: Uint8Array;
}

function checkToolUse(violations: Violations, path: string, value: ToolUse): void {
  checkModelBlock(violations, path, value);
  violations.string(`${path}.name`, value.name, { required: true, maxLength: 255 });
  // What a model wrote is kept even when it is no JSON (cases M20, M21); such a call is never run.
  violations.bytes(`${path}.input_json`, value.inputJson, { required: true });
}

function checkPermission(violations: Violations, path: string, { permission }: { permission: number }): void {
  violations.check(permission >= 1 && permission <= 3, `${path}.permission`, "must be allow, ask or deny");
}

interface Result {
  content: Parameters<typeof checkBlocks>[2];
  outcome: number;
  durationMs?: bigint | undefined;
  fullOutput?: PayloadRef | undefined;
}

function checkResult(violations: Violations, path: string, value: Result): void {
  checkBlocks(violations, `${path}.content`, value.content, MAX_RESULT_BLOCKS);
  violations.check(value.outcome >= 1 && value.outcome <= LAST_OUTCOME, `${path}.outcome`, "is required");
  if (value.durationMs !== undefined)
    violations.integer(`${path}.duration_ms`, value.durationMs, { min: 0n });
  if (value.fullOutput) checkPayloadRef(violations, `${path}.full_output`, value.fullOutput);
}
