import type { Answer } from "../core/pipeline.ts";
import { count } from "../core/request.ts";
import type { Vault } from "../core/vault.ts";

type Data = Readonly<Record<string, unknown>>;

const VERSION = "0.1.0-ganglion-dev";

/**
 * healthAnswer tells the state by its status: 501 not initialized, 503 sealed, 200 active. The query may replace
 * each code. A development vault has no standbys, so 429, 472 and 473 never come from it by themselves.
 */
export function healthAnswer(vault: Vault, query: Data): Answer {
  const code = (field: string, normal: number) => count(query, field) ?? normal;
  const status = !vault.isInitialized
    ? code("uninitcode", 501)
    : vault.isSealed
      ? code("sealedcode", 503)
      : code("activecode", 200);
  return {
    status,
    body: {
      initialized: vault.isInitialized,
      sealed: vault.isSealed,
      standby: vault.isSealed,
      replication_performance_mode: vault.isSealed ? "unknown" : "disabled",
      replication_dr_mode: vault.isSealed ? "unknown" : "disabled",
      server_time_utc: Math.floor(Date.now() / 1000),
      version: VERSION,
      ...cluster(vault),
    },
  };
}

/** sealStatus is the body of `sys/seal-status` and of an unseal. */
export function sealStatus(vault: Vault): Record<string, unknown> {
  const shares = vault.isInitialized ? 1 : 0;
  return {
    type: "shamir",
    initialized: vault.isInitialized,
    sealed: vault.isSealed,
    t: shares,
    n: shares,
    progress: 0,
    nonce: "",
    version: VERSION,
    migration: false,
    recovery_seal: false,
    storage_type: "file",
    ...cluster(vault),
  };
}

function cluster(vault: Vault): Record<string, unknown> {
  if (vault.isSealed) return {};
  return { cluster_name: `vault-cluster-${vault.clusterId.slice(0, 8)}`, cluster_id: vault.clusterId };
}
