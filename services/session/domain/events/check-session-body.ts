import type { Violations } from "../../../common/errors/violations.ts";
import type { Event } from "../../../gen/ganglion/types/v1/event.ts";
import { DIGEST_BYTES } from "../payload-rules.ts";
import { checkReference } from "./check-reference.ts";

type Body = NonNullable<Event["body"]>;

const REQUIRES_ACTION = 2;
const LAST_STOP_REASON = 5;

/** checkSessionBody checks the events about a session's course; types without bounds pass. */
export function checkSessionBody(violations: Violations, path: string, body: Body): void {
  const at = (field: string) => `${path}.${field}`;
  switch (body.$case) {
    case "sessionStatusIdle": {
      const reason = body.value.stopReason;
      const name = at("session_status_idle.stop_reason");
      if (!reason || reason.type < 1 || reason.type > LAST_STOP_REASON) {
        violations.add(`${name}.type`, "is required");
        return;
      }
      const isWaiting = reason.type === REQUIRES_ACTION;
      violations.check(
        isWaiting === reason.eventIds.length > 0,
        `${name}.event_ids`,
        "belongs to requires_action only",
      );
      violations.count(`${name}.event_ids`, reason.eventIds.length, { max: 1000 });
      return;
    }
    case "sessionStatusTerminated":
      violations.string(at("session_status_terminated.reason"), body.value.reason, {
        required: true,
        pattern: /^[a-z_]{1,64}$/,
        patternMeans: "1 to 64 characters a-z and _",
      });
      violations.check(
        body.value.requestedBy === undefined,
        at("session_status_terminated.requested_by"),
        "is set by the log",
      );
      return;
    case "sessionUsage":
      violations.present(at("session_usage.usage"), body.value.usage);
      violations.integer(at("session_usage.active_ms"), body.value.activeMs, { min: 0n });
      return;
    case "sessionError":
      violations.string(at("session_error.error_type"), body.value.errorType, {
        required: true,
        maxLength: 64,
      });
      violations.string(at("session_error.message"), body.value.message, { required: true, maxLength: 200 });
      violations.check(body.value.part >= 1 && body.value.part <= 7, at("session_error.part"), "is required");
      violations.check(
        body.value.retryStatus >= 1 && body.value.retryStatus <= 3,
        at("session_error.retry_status"),
        "is required",
      );
      violations.string(at("session_error.repository_url"), body.value.repositoryUrl, { maxLength: 2048 });
      return;
    case "spanModelRequestStart":
      violations.integer(at("span_model_request_start.consumed_position"), body.value.consumedPosition, {
        min: 0n,
      });
      violations.string(at("span_model_request_start.model"), body.value.model, {
        required: true,
        maxLength: 256,
      });
      violations.check(
        body.value.requestSha256.length === 0 || body.value.requestSha256.length === DIGEST_BYTES,
        at("span_model_request_start.request_sha256"),
        "must be 32 bytes",
      );
      return;
    case "spanModelRequestEnd":
      checkReference(
        violations,
        at("span_model_request_end.model_request_start_id"),
        body.value.modelRequestStartId,
      );
      violations.integer(at("span_model_request_end.duration_ms"), body.value.durationMs, { min: 0n });
      return;
    case "ganglionHandProvisioned":
      violations.string(at("ganglion_hand_provisioned.hand_id"), body.value.handId, {
        required: true,
        maxLength: 80,
      });
      return;
    case "ganglionHandLost":
      violations.string(at("ganglion_hand_lost.hand_id"), body.value.handId, {
        required: true,
        maxLength: 80,
      });
      return;
    case "ganglionMcpToolsResolved":
      violations.string(at("ganglion_mcp_tools_resolved.mcp_server_name"), body.value.mcpServerName, {
        required: true,
        maxLength: 255,
      });
      return;
    case "ganglionContextStrategySet":
      violations.string(at("ganglion_context_strategy_set.strategy"), body.value.strategy, {
        required: true,
        maxLength: 64,
      });
      return;
  }
}
