import type { Hono } from "hono";
import { sealPurposes } from "../../common/seal/seal-purposes.ts";
import { sealSecret } from "../../common/seal/seal-secret.ts";
import type {
  Credential,
  CredentialValidation,
  SealedSecret,
} from "../../gen/ganglion/vault/v1/vault_service.ts";
import {
  type CredentialSecrets,
  createCredentialFromJson,
  updateCredentialFromJson,
} from "../domain/credential-from-json.ts";
import { flagOf, limitOf, one, readQuery } from "../domain/page-query.ts";
import { credentialToJson, validationToJson } from "../domain/vault-to-json.ts";
import { answer } from "./answer.ts";
import { readBody } from "./read-body.ts";
import type { RestContext, RestDeps, RestVariables } from "./rest-deps.ts";

/**
 * credentialRoutes adds /v1/vaults/{vault}/credentials. Secrets that come this way are sealed to mcp-proxy before
 * anything else is done with them, and kept nowhere here.
 */
export function credentialRoutes(app: Hono<{ Variables: RestVariables }>, { vaults }: RestDeps): void {
  const AT = "/v1/vaults/:vault/credentials";
  const ONE = `${AT}/:credential`;
  const show = (credential: Credential | undefined) => credentialToJson(credential as Credential);
  const named = (c: RestContext) => ({
    vaultId: c.req.param("vault") as string,
    credentialId: c.req.param("credential") as string,
  });

  const seal = async (
    c: RestContext,
    vaultId: string,
    auth: NonNullable<Credential["auth"]>,
    secrets: CredentialSecrets,
  ) => {
    const purposes = sealPurposes(vaultId, auth);
    const sealed: Record<keyof CredentialSecrets, SealedSecret | undefined> = {
      secret: undefined,
      refreshToken: undefined,
      clientSecret: undefined,
    };
    const given = Object.entries(secrets).filter(([, text]) => text !== undefined);
    if (given.length === 0) return sealed;
    const key = await vaults.getSealingKey({}, c.get("call"));
    for (const [field, text] of given as [keyof CredentialSecrets, string][]) {
      sealed[field] = await sealSecret(key, purposes[field], text);
    }
    return sealed;
  };

  app.post(AT, async (c) => {
    const vaultId = c.req.param("vault");
    const { request, auth, secrets } = createCredentialFromJson(
      vaultId,
      await readBody(c),
      c.get("requestId"),
    );
    const sealed = await seal(c, vaultId, auth, secrets);
    return answer(
      c,
      show((await vaults.createCredential({ ...request, ...sealed }, c.get("call"))).credential),
    );
  });

  app.get(AT, async (c) => {
    const query = readQuery(new URL(c.req.url).search, ["limit", "page", "include_archived"]);
    const page = await vaults.listCredentials(
      {
        vaultId: c.req.param("vault"),
        pageSize: limitOf(query, 20, 100),
        pageToken: one(query, "page") ?? "",
        includeArchived: flagOf(query, "include_archived"),
      },
      c.get("call"),
    );
    return answer(c, { data: page.credentials.map(show), next_page: page.nextPageToken || null });
  });

  app.get(ONE, async (c) =>
    answer(c, show((await vaults.getCredential(named(c), c.get("call"))).credential)),
  );

  app.post(ONE, async (c) => {
    const body = await readBody(c);
    const record = (await vaults.getCredential(named(c), c.get("call"))).credential as Credential;
    const { request, secrets } = updateCredentialFromJson(record, body);
    const auth = record.auth as NonNullable<Credential["auth"]>;
    const sealed = await seal(c, record.vaultId, auth, secrets);
    return answer(
      c,
      show((await vaults.updateCredential({ ...request, ...sealed }, c.get("call"))).credential),
    );
  });

  app.delete(ONE, async (c) => {
    await vaults.deleteCredential(named(c), c.get("call"));
    return answer(c, { id: named(c).credentialId, type: "vault_credential_deleted" });
  });

  app.post(`${ONE}/archive`, async (c) =>
    answer(c, show((await vaults.archiveCredential(named(c), c.get("call"))).credential)),
  );

  app.post(`${ONE}/mcp_oauth_validate`, async (c) => {
    const { validation } = await vaults.validateCredential(named(c), c.get("call"));
    return answer(c, validationToJson(validation as CredentialValidation));
  });
}
