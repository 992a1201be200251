import type { CredentialRow } from "./access.ts";
import { type FindBindingDeps, findBinding } from "./find-binding.ts";
import type { PlaceholderOf } from "./placeholder.ts";
import { proxyError } from "./proxy-error.ts";
import { isMac } from "./row-mac.ts";

/** What setting up a hand needs. */
export interface HandSetupDeps extends FindBindingDeps {
  /** Active environment variables of a workspace's vaults, in the order of the vaults. */
  listVariables: (workspaceId: string, vaultIds: readonly string[]) => Promise<CredentialRow[]>;
  placeholderOf: PlaceholderOf;
  /** PEM of those who may vouch for hosts towards a session's hands, the session's own authority first. */
  trustedPem: (sessionId: string) => Promise<string>;
}

/** What a hand is given. */
export interface HandSetup {
  egressCaPem: string;
  placeholders: { name: string; value: string }[];
  gitRewrites: { prefix: string; path: string }[];
  hasEgress: boolean;
}

/** Says what a session's hands are given. Nothing of it is secret. */
export async function setUpHand(deps: HandSetupDeps, sessionId: string): Promise<HandSetup> {
  const binding = await findBinding(deps, sessionId);
  if (binding.ended !== false) throw proxyError("SESSION_ENDED");
  const gitRewrites = new Map<string, string>();
  for (const { url } of binding.gitRepositories) {
    const { protocol, host } = new URL(url);
    gitRewrites.set(`${protocol}//${host}/`, `/git/${host}/`);
  }
  const values = new Map<string, string>();
  // Without network rules there is no host to which one could go.
  const variables = binding.networking ? await deps.listVariables(binding.workspaceId, binding.vaultIds) : [];
  for (const credential of variables) {
    if (!isMac(credential.mac, deps.mac.credential(credential))) throw proxyError("ROW_TAMPERED");
    if (!values.has(credential.secretName)) {
      values.set(credential.secretName, deps.placeholderOf(sessionId, credential.credentialId));
    }
  }
  return {
    egressCaPem: await deps.trustedPem(sessionId),
    placeholders: [...values].map(([name, value]) => ({ name, value })),
    gitRewrites: [...gitRewrites].map(([prefix, path]) => ({ prefix, path })),
    hasEgress: binding.networking !== null || binding.gitRepositories.length > 0,
  };
}
