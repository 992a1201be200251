import type { MeshClient } from "../../common/grpc/create-client.ts";
import { newId } from "../../common/ids/new-id.ts";
import { type SealPurposes, sealPurposes } from "../../common/seal/seal-purposes.ts";
import { sealSecret } from "../../common/seal/seal-secret.ts";
import {
  type Credential,
  type SealedSecret,
  TokenEndpointAuth,
  type UpdateCredentialRequest,
  type VaultServiceService,
} from "../../gen/ganglion/vault/v1/vault_service.ts";
import type { Invocation } from "../commands/command.ts";
import { CliError, EXIT } from "../terminal/exit-codes.ts";
import { authOf, expiryOf, networkingOf, placesOf } from "./credential-options.ts";
import { readSecrets } from "./read-secret.ts";

type VaultClient = MeshClient<typeof VaultServiceService>;
type Options = Invocation["options"];
type Field = keyof SealPurposes;

/** What a person is asked for, by field. */
const PROMPTS: Record<Field, string> = {
  secret: "token",
  refreshToken: "refresh token",
  clientSecret: "client secret",
};
const FIELDS: Record<string, Field> = {
  token: "secret",
  "refresh-token": "refreshToken",
  "client-secret": "clientSecret",
};

/** putCredential stores a new credential as the options say; its secrets are read from standard input and sealed. */
export async function putCredential(
  client: VaultClient,
  vaultId: string,
  options: Options,
): Promise<{ made: Credential; target: string }> {
  const auth = authOf(options);
  const purposes = sealPurposes(vaultId, auth);
  const refresh = auth.$case === "mcpOauth" ? auth.value.refresh : undefined;
  const isPublic = refresh?.tokenEndpointAuth === TokenEndpointAuth.TOKEN_ENDPOINT_AUTH_NONE;
  const fields: Field[] = ["secret"];
  if (refresh) fields.push("refreshToken");
  if (refresh && !isPublic) fields.push("clientSecret");
  const { credential } = await client.createCredential({
    requestId: newId("req"),
    vaultId,
    displayName: options.name === undefined ? "" : String(options.name),
    metadata: {},
    auth,
    ...(await readSealed(client, purposes, fields)),
  });
  return { made: credential as Credential, target: purposes.secret.destination };
}

/** rotateCredential stores another secret in place of one of a credential's. */
export async function rotateCredential(
  client: VaultClient,
  name: { vaultId: string; credentialId: string },
  which: string,
): Promise<Credential> {
  const field = FIELDS[which];
  if (!field) throw new CliError(`--which is one of ${Object.keys(FIELDS).join(", ")}`, EXIT.usage);
  const record = (await client.getCredential(name)).credential as Credential;
  const purposes = sealPurposes(name.vaultId, record.auth as NonNullable<Credential["auth"]>);
  const sealed = await readSealed(client, purposes, [field]);
  const { credential } = await client.updateCredential({ ...NO_CHANGE, ...name, ...sealed });
  return credential as Credential;
}

/** changeCredential changes what is not secret of a credential. */
export async function changeCredential(
  client: VaultClient,
  name: { vaultId: string; credentialId: string },
  options: Options,
): Promise<Credential> {
  const { auth } = (await client.getCredential(name)).credential as Credential;
  const change: UpdateCredentialRequest = { ...NO_CHANGE, ...NO_SECRETS, ...name };
  if (options.name !== undefined) change.displayName = String(options.name);
  if (auth?.$case === "mcpOauth") {
    const scope = options.scope === undefined ? undefined : String(options.scope);
    change.auth = { $case: "mcpOauth", value: { expiresAt: expiryOf(options), scope } };
  } else if (auth?.$case === "environmentVariable") {
    const value = { networking: networkingOf(options), injectionLocation: placesOf(options) };
    change.auth = { $case: "environmentVariable", value };
  }
  return (await client.updateCredential(change)).credential as Credential;
}

const NO_CHANGE = { metadataSet: {}, metadataRemove: [], auth: undefined };
const NO_SECRETS: Record<Field, SealedSecret | undefined> = {
  secret: undefined,
  refreshToken: undefined,
  clientSecret: undefined,
};

async function readSealed(client: VaultClient, purposes: SealPurposes, fields: readonly Field[]) {
  const secrets = await readSecrets(fields.map((field) => PROMPTS[field]));
  const key = await client.getSealingKey({});
  const sealed = { ...NO_SECRETS };
  for (const [index, field] of fields.entries()) {
    sealed[field] = await sealSecret(key, purposes[field], secrets[index] as string);
  }
  return sealed;
}
