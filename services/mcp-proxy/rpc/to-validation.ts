import {
  type CredentialValidation,
  CredentialVerdict,
  RefreshStatus,
  type UpstreamResponse,
} from "../../gen/ganglion/vault/v1/vault_service.ts";
import type { SeenAnswer, Validation } from "../domain/validate-credential.ts";
import { toTimestamp } from "./to-messages.ts";

const VERDICTS = {
  valid: CredentialVerdict.CREDENTIAL_VERDICT_VALID,
  invalid: CredentialVerdict.CREDENTIAL_VERDICT_INVALID,
  unknown: CredentialVerdict.CREDENTIAL_VERDICT_UNKNOWN,
} as const;
const REFRESHES = {
  succeeded: RefreshStatus.REFRESH_STATUS_SUCCEEDED,
  failed: RefreshStatus.REFRESH_STATUS_FAILED,
  connect_error: RefreshStatus.REFRESH_STATUS_CONNECT_ERROR,
  no_refresh_token: RefreshStatus.REFRESH_STATUS_NO_REFRESH_TOKEN,
} as const;

/** What a validation came to, as a message. */
export function toValidation(
  { vaultId, credentialId }: { vaultId: string; credentialId: string },
  { verdict, hasRefreshToken, probe, refresh }: Validation,
): CredentialValidation {
  return {
    credentialId,
    vaultId,
    validateTime: toTimestamp(new Date()),
    hasRefreshToken,
    verdict: VERDICTS[verdict],
    mcpProbe: probe ? { method: probe.method, httpResponse: toResponse(probe.answer) } : undefined,
    refresh: refresh
      ? { status: REFRESHES[refresh.status], httpResponse: toResponse(refresh.answer) }
      : undefined,
  };
}

function toResponse(answer: SeenAnswer | null): UpstreamResponse | undefined {
  if (!answer) return undefined;
  const { status, contentType, body, isTruncated } = answer;
  return { statusCode: status, contentType, body, bodyTruncated: isTruncated };
}
