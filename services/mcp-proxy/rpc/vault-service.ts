import { Violations } from "../../common/errors/violations.ts";
import { type Implementation, implement, unary } from "../../common/grpc/handlers.ts";
import type { Principal } from "../../common/grpc/principal.ts";
import { sortedJson } from "../../common/json/sorted-json.ts";
import { Role } from "../../gen/ganglion/types/v1/access.ts";
import { type CreateVaultRequest, VaultServiceService } from "../../gen/ganglion/vault/v1/vault_service.ts";
import { updateCredential } from "../domain/change-credential.ts";
import type { Confinement } from "../domain/confinement.ts";
import { isCredentialId, isVaultId } from "../domain/ids.ts";
import { type CredentialDeps, createCredential, findCredential } from "../domain/manage-credentials.ts";
import type { AuthorizationDeps } from "../domain/oauth/start-authorization.ts";
import { proxyError } from "../domain/proxy-error.ts";
import type { VaultStore } from "../domain/records.ts";
import {
  archiveCredential,
  archiveVault,
  deleteCredential,
  deleteVault,
} from "../domain/retire-credentials.ts";
import { type CredentialValidator, validateCredential } from "../domain/validate-credential.ts";
import { oauthMethods, whoIs } from "./oauth-methods.ts";
import { readCreateCredential, readUpdateCredential } from "./read-credential.ts";
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
  readRecordChange,
  workspaceOf,
} from "./read-requests.ts";
import { toCredential, toVault } from "./to-messages.ts";
import { toValidation } from "./to-validation.ts";

/** What VaultService needs. */
export interface VaultServiceDeps extends CredentialDeps {
  vaultStore: VaultStore;
  sealingKey: { keyId: string; publicKey: Buffer };
  /** Base URLs of the configured model upstreams, in normal form. */
  modelUrls: readonly string[];
  /** Tries a credential at its MCP server. */
  validate: CredentialValidator;
  /** What connecting a person needs beside what is here. */
  authorizations: Omit<AuthorizationDeps, "credentials">;
  /** A secret could not be removed from Vault yet; it will be tried again. */
  onPurgeFailed: (error: unknown) => void;
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
      const { isDecoy } = req;
      const said = [req.displayName, req.metadata, ...(isDecoy ? [isDecoy] : [])];
      const requestDigest = digestOf(sortedJson(said));
      const row = await deps.vaults.create({
        who: whoIs(ctx.principal),
        workspace: () => {
          if (isDecoy && ctx.principal.role !== Role.ROLE_OPERATOR) throw proxyError("ROLE_NOT_ALLOWED");
          return workspaceOf(ctx.principal, req.workspaceId);
        },
        isDecoy,
        displayName: req.displayName,
        metadata: req.metadata,
        requestId: req.requestId || null,
        requestDigest,
      });
      return { vault: toVault(row, ctx.principal.role) };
    }),
    getVault: unary(async (req, ctx) => {
      const found = new Violations();
      checkVaultId(found, req.vaultId);
      found.throwIfAny();
      const row = await deps.vaults.get(req.vaultId, lookIn(ctx.principal, req.workspaceId));
      return { vault: toVault(row, ctx.principal.role) };
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
      return { vaults: page.map((row) => toVault(row, ctx.principal.role)), nextPageToken };
    }),
    updateVault: unary(async (req, ctx) => {
      const found = new Violations();
      checkVaultId(found, req.vaultId);
      const change = readRecordChange(found, req, { isNameRequired: true });
      found.throwIfAny();
      const row = await deps.vaults.update(req.vaultId, change, whoIs(ctx.principal));
      return { vault: toVault(row, ctx.principal.role) };
    }),
    archiveVault: unary(async ({ vaultId }, ctx) => {
      checkNamed(vaultId);
      const row = await archiveVault(deps, vaultId, whoIs(ctx.principal));
      return { vault: toVault(row, ctx.principal.role) };
    }),
    deleteVault: unary(async ({ vaultId }, ctx) => {
      checkNamed(vaultId);
      await deleteVault(deps, vaultId, whoIs(ctx.principal), deps.onPurgeFailed);
      return {};
    }),
    getSystemVault: unary(async (req, ctx) => {
      const workspaceId = workspaceOf(ctx.principal, req.workspaceId);
      const row = await deps.vaults.system(workspaceId, whoIs(ctx.principal));
      return { vault: toVault(row, ctx.principal.role) };
    }),
    createCredential: unary(async (req, ctx) => {
      const request = readCreateCredential(req, deps.modelUrls);
      const row = await createCredential(deps, request, whoIs(ctx.principal));
      return { credential: toCredential(row) };
    }),
    getCredential: unary(async (req, ctx) => {
      checkNamed(req.vaultId, req.credentialId);
      return { credential: toCredential(await findCredential(deps, req, confinementOf(ctx.principal))) };
    }),
    updateCredential: unary(async (req, ctx) => {
      const change = readUpdateCredential(req);
      return { credential: toCredential(await updateCredential(deps, change, whoIs(ctx.principal))) };
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
      checkNamed(req.vaultId, req.credentialId);
      return { credential: toCredential(await archiveCredential(deps, req, whoIs(ctx.principal))) };
    }),
    deleteCredential: unary(async (req, ctx) => {
      checkNamed(req.vaultId, req.credentialId);
      await deleteCredential(deps, req, whoIs(ctx.principal), deps.onPurgeFailed);
      return {};
    }),
    validateCredential: unary(async (req, ctx) => {
      checkNamed(req.vaultId, req.credentialId);
      const found = await validateCredential(deps, req, whoIs(ctx.principal));
      return { validation: toValidation(req, found) };
    }),
    ...oauthMethods({ ...deps.authorizations, credentials: deps }),
  });
}

function checkNamed(vaultId: string, credentialId?: string): void {
  const found = new Violations();
  checkVaultId(found, vaultId);
  if (credentialId !== undefined) checkCredentialId(found, credentialId);
  found.throwIfAny();
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
