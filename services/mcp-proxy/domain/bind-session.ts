import { parseDestination } from "./canonical-url.ts";
import type { Vaults } from "./manage-vaults.ts";
import { proxyError } from "./proxy-error.ts";
import type { BindingStore, VaultStore } from "./records.ts";
import { type BindingFields, isMac, type RowMac } from "./row-mac.ts";

/** What binding needs. */
export interface BindDeps {
  bindings: BindingStore;
  vaultStore: VaultStore;
  vaults: Vaults;
  mac: RowMac;
}

/**
 * Ties a session to its vaults, MCP servers and models, once. The same binding again changes nothing; another one for
 * the same session is refused, so nobody can widen a session by binding it again.
 */
export async function bindSession(deps: BindDeps, asked: BindingFields): Promise<void> {
  const known = await deps.vaultStore.findMany(asked.vaultIds);
  for (const vaultId of asked.vaultIds) {
    const vault = known.find((row) => row.vaultId === vaultId);
    if (!vault || vault.workspaceId !== asked.workspaceId || vault.isSystem) {
      throw proxyError("VAULT_NOT_FOUND", { metadata: { vault_id: vaultId } });
    }
    if (!isMac(vault.mac, deps.mac.vault(vault))) throw proxyError("ROW_TAMPERED");
    if (vault.archivedAt) throw proxyError("VAULT_ARCHIVED", { metadata: { vault_id: vaultId } });
  }
  const system = await deps.vaults.system(asked.workspaceId);
  const binding: BindingFields = {
    sessionId: asked.sessionId,
    workspaceId: asked.workspaceId,
    vaultIds: [...asked.vaultIds, system.vaultId],
    mcpServers: asked.mcpServers.map(({ name, url }) => ({ name, url: parseDestination(url)?.url ?? url })),
    models: [...asked.models],
  };
  const mac = deps.mac.binding(binding);
  if (await deps.bindings.insert(binding, mac)) return;
  const before = await deps.bindings.find(asked.sessionId);
  if (!before || !isMac(before.mac, deps.mac.binding(before))) throw proxyError("ROW_TAMPERED");
  // The MAC covers every field: equal MACs, equal bindings.
  if (!isMac(before.mac, mac)) throw proxyError("ID_REUSED");
}
