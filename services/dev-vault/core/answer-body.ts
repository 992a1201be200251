import { wrapAnswer } from "../wrapping/wrap-answer.ts";
import type { VaultAnswer, VaultRequest } from "./request.ts";
import type { VaultState } from "./vault-state.ts";

/** answerBody puts a handler's answer into Vault's envelope, or into a wrapping token when that was asked for. */
export function answerBody(
  state: VaultState,
  request: VaultRequest,
  answer: VaultAnswer | undefined,
): Record<string, unknown> | undefined {
  if (!answer) return undefined;
  const isWrapped = request.wrapTtlMs > 0 && answer.status === undefined && !answer.replay;
  if (isWrapped) {
    const wrapInfo = wrapAnswer(state, request, answer);
    return { ...envelope(""), wrap_info: wrapInfo };
  }
  if (answer.replay) return { ...envelope(request.id), ...answer.replay };
  const warnings = answer.warnings && answer.warnings.length > 0 ? answer.warnings : null;
  return {
    ...(answer.repeatsData ? answer.data : {}),
    ...envelope(request.id),
    data: answer.data ?? null,
    warnings,
    auth: answer.auth ?? null,
  };
}

function envelope(requestId: string): Record<string, unknown> {
  return {
    request_id: requestId,
    lease_id: "",
    renewable: false,
    lease_duration: 0,
    data: null,
    wrap_info: null,
    warnings: null,
    auth: null,
  };
}
