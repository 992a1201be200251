import { Violations } from "../../common/errors/violations.ts";
import { type Implementation, implement, unary } from "../../common/grpc/handlers.ts";
import type { Principal } from "../../common/grpc/principal.ts";
import { Role } from "../../gen/ganglion/types/v1/access.ts";
import { type CreateVaultRequest, VaultServiceService } from "../../gen/ganglion/vault/v1/vault_service.ts";
import { isCredentialId, isVaultId } from "../domain/ids.ts";
import {
  archiveCredential,
  type CredentialDeps,
  createCredential,
  updateCredential,
} from "../domain/manage-credentials.ts";
import type { Confinement } from "../domain/manage-vaults.ts";
import { proxyError } from "../domain/proxy-error.ts";
import type { VaultStore } from "../domain/records.ts";
import { readCreateCredential, readSealed } from "./read-credential.ts";
import {
  checkCredentialId,
  checkMetadata,
  checkRequestId,
  checkText,
  checkVaultId,
  confinementOf,
  cutPage,
  digestOf,
  readPage,
  workspaceOf,
} from "./read-requests.ts";
import { toCredential, toVault } from "./to-messages.ts";

/** What VaultService needs. */
export interface VaultServiceDeps extends CredentialDeps {
  vaultStore: VaultStore;
  sealingKey: { keyId: string; publicKey: Buffer };
  /** Base URLs of the configured model upstreams, in normal form. */
  modelUrls: readonly string[];
}

/** Makes VaultService. */
export function vaultService(deps: VaultServiceDeps): Implementation {
  return implement(VaultServiceService, {
    getSealingKey: unary(async () => {
      const { keyId, publicKey } = deps.sealingKey;
      return { keyId, publicKey };
    }),
    createVault: unary(async (req, ctx) => {
      checkCreateVault(req);
      const requestDigest = digestOf(req.displayName, sortedJson(req.metadata));
      const row = await deps.vaults.create({
        workspaceId: workspaceOf(ctx.principal, req.workspaceId),
        displayName: req.displayName,
        metadata: req.metadata,
        requestId: req.requestId || null,
        requestDigest,
      });
      return { vault: toVault(row) };
    }),
    getVault: unary(async (req, ctx) => {
      const found = new Violations();
      checkVaultId(found, req.vaultId);
      found.throwIfAny();
      return { vault: toVault(await deps.vaults.get(req.vaultId, lookIn(ctx.principal, req.workspaceId))) };
    }),
    listVaults: unary(async (req, ctx) => {
      const found = new Violations();
      const { limit, before } = readPage(found, req, isVaultId);
      found.throwIfAny();
      const rows = await deps.vaultStore.list({
        workspaceId: workspaceOf(ctx.principal, req.workspaceId),
        before,
        limit: limit + 1,
        withArchived: req.includeArchived,
        withSystem: confinementOf(ctx.principal).workspaceId === null,
      });
      const { page, nextPageToken } = cutPage(rows, limit, (row) => row.vaultId);
      return { vaults: page.map(toVault), nextPageToken };
    }),
    getSystemVault: unary(async (req, ctx) => {
      const row = await deps.vaults.system(workspaceOf(ctx.principal, req.workspaceId));
      return { vault: toVault(row) };
    }),
    createCredential: unary(async (req, ctx) => {
      const request = readCreateCredential(req, deps.modelUrls);
      const row = await createCredential(deps, request, confinementOf(ctx.principal));
      return { credential: toCredential(row) };
    }),
    updateCredential: unary(async (req, ctx) => {
      const found = new Violations();
      checkVaultId(found, req.vaultId);
      checkCredentialId(found, req.credentialId);
      const secret = readSealed(found, req.secret);
      found.throwIfAny();
      const { vaultId, credentialId } = req;
      const row = await updateCredential(
        deps,
        { vaultId, credentialId, secret },
        confinementOf(ctx.principal),
      );
      return { credential: toCredential(row) };
    }),
    listCredentials: unary(async (req, ctx) => {
      const found = new Violations();
      checkVaultId(found, req.vaultId);
      const { limit, before } = readPage(found, req, isCredentialId);
      found.throwIfAny();
      await deps.vaults.get(req.vaultId, confinementOf(ctx.principal));
      const options = { vaultId: req.vaultId, before, limit: limit + 1, withArchived: req.includeArchived };
      const { page, nextPageToken } = cutPage(
        await deps.store.list(options),
        limit,
        (row) => row.credentialId,
      );
      return { credentials: page.map(toCredential), nextPageToken };
    }),
    archiveCredential: unary(async (req, ctx) => {
      const found = new Violations();
      checkVaultId(found, req.vaultId);
      checkCredentialId(found, req.credentialId);
      found.throwIfAny();
      return { credential: toCredential(await archiveCredential(deps, req, confinementOf(ctx.principal))) };
    }),
  });
}

function checkCreateVault(req: CreateVaultRequest): void {
  const found = new Violations();
  checkRequestId(found, req.requestId);
  checkText(found, "display_name", req.displayName, { required: true, maxLength: 255 });
  checkMetadata(found, req.metadata);
  found.throwIfAny();
}

/** The workspace in which a vault is looked for: the session service must name one, an operator may. */
function lookIn(principal: Principal, asked: string): Confinement {
  const own = confinementOf(principal);
  if (own.workspaceId !== null) return { workspaceId: workspaceOf(principal, asked) };
  if (asked !== "") return { workspaceId: asked };
  if (principal.role === Role.ROLE_OPERATOR) return own;
  throw proxyError("INVALID_FIELD", {
    message: "workspace_id is required",
    metadata: { field: "workspace_id" },
  });
}

function sortedJson(metadata: Record<string, string>): string {
  return JSON.stringify(Object.entries(metadata).sort(([a], [b]) => (a < b ? -1 : 1)));
}
