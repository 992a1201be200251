import { GanglionError } from "../../common/errors/ganglion-error.ts";
import { Violations } from "../../common/errors/violations.ts";
import { implement, unary } from "../../common/grpc/handlers.ts";
import { ApiKeyServiceService } from "../../gen/ganglion/agent/v1/api_key_service.ts";
import { idReused, notFound } from "../domain/errors.ts";
import { existingWorkspace, requestedWorkspace } from "./caller-of.ts";
import { checkId, checkPageSize, checkPageToken, checkText } from "./check-request.ts";
import type { Deps } from "./deps.ts";

const SHA256_BYTES = 32;

/** ApiKeyService with its handlers. */
export const apiKeyService = (deps: Deps) =>
  implement(ApiKeyServiceService, {
    createApiKey: unary(async ({ keySha256, name, workspaceId: named }, ctx) => {
      const violations = new Violations();
      violations.check(keySha256.length === SHA256_BYTES, "key_sha256", "must be 32 bytes");
      violations.check(name !== "", "name", "is required");
      checkText(violations, "name", name, 256);
      violations.throwIfAny();
      const workspaceId = requestedWorkspace(ctx, named);
      const apiKey = await deps.apiKeys.create(workspaceId, keySha256, name, ctx.signal);
      // Names the hash by nothing: which workspace has the key is none of the caller's business.
      if (apiKey === "taken") throw idReused("key_sha256");
      return { apiKey };
    }),
    listApiKeys: unary(async ({ pageSize: asked, pageToken, workspaceId: named }, ctx) => {
      const violations = new Violations();
      const pageSize = checkPageSize(violations, asked);
      checkPageToken(violations, pageToken);
      violations.throwIfAny();
      const workspaceId = await existingWorkspace(deps.workspaces, ctx, named);
      return deps.apiKeys.list({ workspaceId, pageSize, pageToken }, ctx.signal);
    }),
    revokeApiKey: unary(async ({ apiKeyId }, ctx) => {
      const violations = new Violations();
      checkId(violations, "api_key_id", apiKeyId);
      violations.throwIfAny();
      const apiKey = await deps.apiKeys.revoke(apiKeyId, ctx.signal);
      if (!apiKey) throw notFound("api_key", apiKeyId);
      return { apiKey };
    }),
    authenticateApiKey: unary(async ({ keySha256 }, ctx) => {
      const isHash = keySha256.length === SHA256_BYTES;
      const apiKey = isHash ? await deps.apiKeys.find(keySha256, ctx.signal) : undefined;
      if (!apiKey) throw apiKeyInvalid();
      return { apiKey };
    }),
  });

function apiKeyInvalid(): GanglionError {
  return new GanglionError({
    code: "UNAUTHENTICATED",
    reason: "API_KEY_INVALID",
    message: "the API key is missing, unknown or revoked",
  });
}
