import { formatSeconds } from "../core/duration.ts";
import type { VaultAnswer, VaultRequest } from "../core/request.ts";
import type { VaultState } from "../core/vault-state.ts";

/** wrapAnswer puts an answer away and gives a token that opens it once. */
export function wrapAnswer(state: VaultState, request: VaultRequest, answer: VaultAnswer): object {
  const creationTime = new Date().toISOString();
  const creationPath = request.path;
  const { token, entry } = state.tokens.create({
    policies: ["response-wrapping"],
    path: creationPath,
    metadata: null,
    displayName: "response-wrapping",
    entityId: "",
    isRenewable: false,
    usesLeft: 1,
    ttlMs: request.wrapTtlMs,
    expiresAt: Date.now() + request.wrapTtlMs,
    periodMs: 0,
    explicitMaxTtlMs: request.wrapTtlMs,
    lastMomentAt: Date.now() + request.wrapTtlMs,
    wrapped: {
      creationPath,
      creationTime,
      ttlMs: request.wrapTtlMs,
      answer: { data: answer.data ?? null, auth: answer.auth ?? null, warnings: answer.warnings ?? null },
    },
  });
  const wrappedAccessor = answer.auth?.accessor ?? answer.wrappedAccessor;
  return {
    token,
    accessor: entry.accessor,
    ttl: formatSeconds(request.wrapTtlMs),
    creation_time: creationTime,
    creation_path: creationPath,
    ...(wrappedAccessor === undefined ? {} : { wrapped_accessor: wrappedAccessor }),
  };
}
