import type { MeshClient } from "../../common/grpc/create-client.ts";
import { sealPurposes } from "../../common/seal/seal-purposes.ts";
import { sealSecret } from "../../common/seal/seal-secret.ts";
import type { Credential, VaultServiceService } from "../../gen/ganglion/vault/v1/vault_service.ts";

/** The model API that is used where a key for it is stored. */
export const ANTHROPIC_URL = "https://api.anthropic.com";

type VaultClient = MeshClient<typeof VaultServiceService>;

/** storedModelKeys lists the model keys in the system vault of a workspace; never a secret. */
export async function storedModelKeys(client: VaultClient, workspaceId = ""): Promise<Credential[]> {
  const { vault } = await client.getSystemVault({ workspaceId });
  const vaultId = (vault as { id: string }).id;
  const found: Credential[] = [];
  for (let pageToken = ""; ; ) {
    const page = await client.listCredentials({ vaultId, pageSize: 100, pageToken, includeArchived: false });
    found.push(...page.credentials.filter((credential) => credential.auth?.$case === "modelApiKey"));
    pageToken = page.nextPageToken;
    if (!pageToken) return found;
  }
}

/** modelUrlOf names the API that a model key is for. */
export function modelUrlOf(credential: Credential): string {
  return credential.auth?.$case === "modelApiKey" ? credential.auth.value.baseUrl : "";
}

/** storeModelKey seals a model key and stores it in the system vault, in place of the one before. */
export async function storeModelKey(
  client: VaultClient,
  options: { baseUrl: string; secret: string; displayName: string; workspaceId?: string },
): Promise<Credential> {
  const { vault } = await client.getSystemVault({ workspaceId: options.workspaceId ?? "" });
  const vaultId = (vault as { id: string }).id;
  const before = (await storedModelKeys(client, options.workspaceId)).find(
    (credential) => trimSlash(modelUrlOf(credential)) === trimSlash(options.baseUrl),
  );
  const auth = { $case: "modelApiKey", value: { baseUrl: options.baseUrl } } as const;
  const { secret: purpose } = sealPurposes(vaultId, before?.auth ?? auth);
  const secret = await sealSecret(await client.getSealingKey({}), purpose, options.secret);
  const { credential } = before
    ? await client.updateCredential({
        credentialId: before.id,
        vaultId,
        secret,
        refreshToken: undefined,
        clientSecret: undefined,
        metadataSet: {},
        metadataRemove: [],
        auth: undefined,
      })
    : await client.createCredential({
        requestId: "",
        vaultId,
        displayName: options.displayName,
        metadata: {},
        auth,
        secret,
        refreshToken: undefined,
        clientSecret: undefined,
      });
  return credential as Credential;
}

function trimSlash(url: string): string {
  return url.replace(/\/+$/, "");
}
