import { proxyError } from "./proxy-error.ts";
import type { BindingStore, StoredBinding } from "./records.ts";
import { isMac, type RowMac } from "./row-mac.ts";

/** Where bindings are, and what tells whether one may be believed. */
export interface FindBindingDeps {
  bindings: BindingStore;
  mac: RowMac;
}

/** Finds a session's binding and believes it only if nobody changed it past the proxy. */
export async function findBinding(
  { bindings, mac }: FindBindingDeps,
  sessionId: string,
): Promise<StoredBinding> {
  const binding = await bindings.find(sessionId);
  if (!binding) throw proxyError("BINDING_NOT_FOUND", { metadata: { session_id: sessionId } });
  if (!isMac(binding.mac, mac.binding(binding))) throw proxyError("ROW_TAMPERED");
  return binding;
}
