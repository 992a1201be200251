import { setTimeout as sleep } from "node:timers/promises";
import type { AuditedDeps } from "../../domain/oauth/audited-request.ts";
import type { AuthorizationStore, DocumentStore, RenewalStore } from "../../domain/oauth/oauth-ports.ts";
import { createRenewals, createRenewingReader, type Renewals } from "../../domain/oauth/renewals.ts";
import type { AuthorizationDeps } from "../../domain/oauth/start-authorization.ts";
import { createCredentialValidator } from "../../domain/oauth/try-credential.ts";
import type { SecretReader } from "../../domain/ports.ts";
import { createRowBox } from "../../domain/row-box.ts";
import type { RowMac } from "../../domain/row-mac.ts";
import type { CredentialValidator } from "../../domain/validate-credential.ts";
import type { UpstreamPools } from "../pools.ts";
import { createOauthExchanges } from "./oauth-exchanges.ts";

/** What the service needs of OAuth. */
export interface OpenOauth {
  /** Reads secrets, access tokens renewed before they expire. */
  secrets: SecretReader;
  renewals: Renewals;
  validate: CredentialValidator;
  authorizations: Omit<AuthorizationDeps, "credentials">;
}

/** Puts the parts of OAuth together. */
export function openOauth(
  parts: AuditedDeps & {
    pools: UpstreamPools;
    documents: DocumentStore;
    renewals: RenewalStore;
    authorizations: AuthorizationStore;
    secrets: SecretReader;
    mac: RowMac;
    macKey: Buffer;
  },
): OpenOauth {
  const { ledger, bound, resolve, documents, mac } = parts;
  const exchanges = createOauthExchanges(parts.pools);
  const box = createRowBox(parts.macKey);
  const audited = { ledger, bound, resolve };
  const now = Date.now;
  const renewals = createRenewals({
    ...audited,
    documents,
    renewals: parts.renewals,
    exchanges,
    box,
    mac,
    now,
    wait: (ms) => sleep(ms),
  });
  return {
    secrets: createRenewingReader(parts.secrets, renewals, now),
    renewals,
    validate: createCredentialValidator({ ...audited, documents, exchanges, renewals }),
    authorizations: { ...audited, exchanges, authorizations: parts.authorizations, box, now },
  };
}
