import type { AccessRow, CredentialRow } from "./access.ts";
import type { Destination } from "./canonical-url.ts";
import { proxyError } from "./proxy-error.ts";

/** A configured model API. */
export interface ModelUpstream {
  name: "anthropic" | "scripted";
  destination: Destination;
}

/** Checks the model against the binding and picks the first upstream for which the session has a key. */
export function chooseModel(
  access: AccessRow,
  model: string,
  upstreams: readonly ModelUpstream[],
): { upstream: ModelUpstream; credential: CredentialRow } {
  if (!access.models.includes(model)) throw proxyError("MODEL_NOT_ALLOWED");
  for (const upstream of upstreams) {
    const credential = access.credentials.find(
      ({ kind, url }) => kind === "model_api_key" && url === upstream.destination.url,
    );
    if (credential) return { upstream, credential };
  }
  throw proxyError("CRED_MISSING", { message: "no model key is stored in the session's vaults" });
}
