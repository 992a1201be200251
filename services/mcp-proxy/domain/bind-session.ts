import { parseDestination } from "./canonical-url.ts";
import { refuseDecoys, type VaultUse } from "./decoys.ts";
import { type FindBindingDeps, findBinding } from "./find-binding.ts";
import type { Vaults } from "./manage-vaults.ts";
import type { AuditedCaller } from "./new-record.ts";
import type { Ledger } from "./ports.ts";
import { proxyError } from "./proxy-error.ts";
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
  const known = await deps.vaultStore.findMany(asked.vaultIds);
  await refuseDecoys(deps, known, useOf(asked, caller));
  for (const vaultId of asked.vaultIds) {
    const vault = known.find((row) => row.vaultId === vaultId);
    if (!vault || vault.workspaceId !== asked.workspaceId || vault.isSystem) {
      throw proxyError("VAULT_NOT_FOUND", { metadata: { vault_id: vaultId } });
    }
    if (!isMac(vault.mac, deps.mac.vault(vault))) throw proxyError("ROW_TAMPERED");
    if (vault.archivedAt) throw proxyError("VAULT_ARCHIVED", { metadata: { vault_id: vaultId } });
  }
  const system = await deps.vaults.system(asked.workspaceId, caller);
  const binding: BindingFields = {
    sessionId: asked.sessionId,
    workspaceId: asked.workspaceId,
    vaultIds: [...asked.vaultIds, system.vaultId],
    mcpServers: inNormalForm(asked.mcpServers),
    models: [...asked.models],
    networking: asked.networking,
    gitRepositories: asked.gitRepositories,
  };
  const mac = deps.mac.binding(binding);
  if (await deps.bindings.insert(binding, mac)) return;
  const before = await deps.bindings.find(asked.sessionId);
  if (!before || !isMac(before.mac, deps.mac.binding(before))) throw proxyError("ROW_TAMPERED");
  // The MAC covers every field: equal MACs, equal bindings.
  if (!isMac(before.mac, mac)) throw proxyError("ID_REUSED");
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
  await refuseDecoys(deps, await deps.vaultStore.findMany(asked.vaultIds), useOf(asked, caller));
  const before = await findBinding(deps, asked.sessionId);
  const system = await deps.vaults.system(asked.workspaceId, caller);
  const { sessionId, workspaceId, models, networking, gitRepositories } = asked;
  const vaultIds = [...asked.vaultIds, system.vaultId];
  const kept = { sessionId, workspaceId, vaultIds, models, networking, gitRepositories };
  // The MAC covers every field: with the old servers it must be the old one.
  const isSame = isMac(before.mac, deps.mac.binding({ ...kept, mcpServers: before.mcpServers }));
  if (!isSame) throw proxyError("ID_REUSED");
  const binding: BindingFields = { ...kept, mcpServers: inNormalForm(asked.mcpServers) };
  const mac = deps.mac.binding(binding);
  if (isMac(before.mac, mac)) return;
  if (!(await deps.bindings.replaceServers(binding, mac, before.mac))) throw proxyError("ID_REUSED");
}

function useOf({ workspaceId, sessionId }: BindingFields, caller: AuditedCaller): VaultUse {
  return { ...caller, operation: "binding.bind", workspaceId, sessionId };
}

function inNormalForm(servers: BindingFields["mcpServers"]): BindingFields["mcpServers"] {
  return servers.map(({ name, url }) => ({ name, url: parseDestination(url)?.url ?? url }));
}
