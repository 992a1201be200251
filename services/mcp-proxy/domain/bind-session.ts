import { auditedChange, type ChangeOperation, type ChangeRequest } from "./audited-change.ts";
import { parseDestination } from "./canonical-url.ts";
import { refuseDecoys, type VaultUse } from "./decoys.ts";
import { type FindBindingDeps, findBinding } from "./find-binding.ts";
import { systemVaultId } from "./ids.ts";
import type { Vaults } from "./manage-vaults.ts";
import type { AuditedCaller } from "./new-record.ts";
import type { Ledger } from "./ports.ts";
import { proxyError, reasonOf } from "./proxy-error.ts";
import type { VaultStore } from "./records.ts";
import { type BindingFields, isMac } from "./row-mac.ts";

/** What binding needs. */
export interface BindDeps extends FindBindingDeps {
  vaultStore: VaultStore;
  vaults: Vaults;
  ledger: Ledger;
}

/**
 * Ties a session to its vaults, MCP servers and models, once. The same binding again changes nothing; another one for
 * the same session is refused, so nobody can widen a session by binding it again without saying so.
 */
export async function bindSession(
  deps: BindDeps,
  asked: BindingFields,
  caller: AuditedCaller,
): Promise<void> {
  await auditedChange(
    deps.ledger,
    changeOf("binding.bind", asked, caller),
    async () => {
      const [known, before] = await Promise.all([
        deps.vaultStore.findMany(asked.vaultIds),
        deps.bindings.find(asked.sessionId),
      ]);
      await refuseDecoys(deps, known, useOf("binding.bind", asked, caller));
      for (const vaultId of asked.vaultIds) {
        const vault = known.find((row) => row.vaultId === vaultId);
        if (!vault || vault.workspaceId !== asked.workspaceId || vault.isSystem) {
          throw proxyError("VAULT_NOT_FOUND", { metadata: { vault_id: vaultId } });
        }
        if (!isMac(vault.mac, deps.mac.vault(vault))) throw proxyError("ROW_TAMPERED");
        if (vault.archivedAt) throw proxyError("VAULT_ARCHIVED", { metadata: { vault_id: vaultId } });
      }
      const binding = bindingOf(asked);
      if (before) refuseOther(deps, before, deps.mac.binding(binding));
      return { ...judgedOf(asked), binding, isBound: before !== undefined };
    },
    async ({ binding, isBound }) => {
      await deps.vaults.system(asked.workspaceId, caller);
      const mac = deps.mac.binding(binding);
      if (isBound || (await deps.bindings.insert(binding, mac))) return;
      // Somebody else came first, in this very moment.
      const before = await deps.bindings.find(asked.sessionId);
      if (!before) throw proxyError("ROW_TAMPERED");
      refuseOther(deps, before, mac);
    },
  );
}

/**
 * Gives a bound session other MCP servers, and nothing else: who asks must name all else as it is bound. Credentials are
 * looked for in the same vaults as before.
 */
export async function rebindSession(
  deps: BindDeps,
  asked: BindingFields,
  caller: AuditedCaller,
): Promise<void> {
  await auditedChange(
    deps.ledger,
    changeOf("binding.replace_servers", asked, caller),
    async () => {
      const known = await deps.vaultStore.findMany(asked.vaultIds);
      await refuseDecoys(deps, known, useOf("binding.replace_servers", asked, caller));
      const before = await findBinding(deps, asked.sessionId);
      const binding = bindingOf(asked);
      // The MAC covers every field: with the old servers it must be the old one.
      const unchanged = deps.mac.binding({ ...binding, mcpServers: before.mcpServers });
      if (!isMac(before.mac, unchanged)) throw proxyError("ID_REUSED");
      return { ...judgedOf(asked), binding, before: before.mac };
    },
    async ({ binding, before }) => {
      await deps.vaults.system(asked.workspaceId, caller);
      const mac = deps.mac.binding(binding);
      if (isMac(before, mac)) return;
      if (!(await deps.bindings.replaceServers(binding, mac, before))) throw proxyError("ID_REUSED");
    },
  );
}

/**
 * Ends a session's binding for good. The fence rises even when the log cannot say so, and then the caller hears that it has to
 * ask again: what takes rights away waits for nobody.
 */
export async function endBinding(
  deps: Pick<BindDeps, "bindings" | "ledger">,
  sessionId: string,
  who: AuditedCaller,
): Promise<void> {
  let isRaised = false;
  const raise = async () => {
    await deps.bindings.raiseFence(sessionId, 0n, true);
    isRaised = true;
  };
  const found = await deps.bindings.find(sessionId);
  const workspaceId = found?.workspaceId ?? "";
  const change = { operation: "binding.end", who: { ...who, workspaceId }, vaultId: "", sessionId } as const;
  try {
    await auditedChange(deps.ledger, change, async () => ({ workspaceId, vaultId: "" }), raise);
  } catch (error) {
    if (!isRaised && reasonOf(error) === "AUDIT_UNAVAILABLE") await raise();
    throw error;
  }
}

/** A change of a session's binding, as records name it: by the session, and the vaults that were asked for. */
function changeOf(operation: ChangeOperation, asked: BindingFields, caller: AuditedCaller): ChangeRequest {
  const { sessionId, workspaceId } = asked;
  return { operation, who: { ...caller, workspaceId }, ...judgedOf(asked), sessionId };
}

function judgedOf({ workspaceId, vaultIds }: BindingFields) {
  return { workspaceId, vaultId: vaultIds.join(" ") };
}

/** The binding with the workspace's system vault, which comes last. */
function bindingOf(asked: BindingFields): BindingFields {
  const { sessionId, workspaceId, models, networking, gitRepositories } = asked;
  return {
    ...{ sessionId, workspaceId, networking, gitRepositories },
    vaultIds: [...asked.vaultIds, systemVaultId(workspaceId)],
    mcpServers: inNormalForm(asked.mcpServers),
    models: [...models],
  };
}

function refuseOther(
  { mac: of }: Pick<BindDeps, "mac">,
  before: BindingFields & { mac: Buffer },
  mac: Buffer,
): void {
  if (!isMac(before.mac, of.binding(before))) throw proxyError("ROW_TAMPERED");
  // The MAC covers every field: equal MACs, equal bindings.
  if (!isMac(before.mac, mac)) throw proxyError("ID_REUSED");
}

function useOf(operation: ChangeOperation, asked: BindingFields, caller: AuditedCaller): VaultUse {
  const { workspaceId, sessionId } = asked;
  return { ...caller, operation, workspaceId, sessionId };
}

function inNormalForm(servers: BindingFields["mcpServers"]): BindingFields["mcpServers"] {
  return servers.map(({ name, url }) => ({ name, url: parseDestination(url)?.url ?? url }));
}
