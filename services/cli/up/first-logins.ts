import { createHash, randomBytes } from "node:crypto";
import { join } from "node:path";
import { createClient } from "../../common/grpc/create-client.ts";
import { TlsBundle } from "../../common/tls/tls-bundle.ts";
import { ApiKeyServiceService } from "../../gen/ganglion/agent/v1/api_key_service.ts";
import { VaultServiceService } from "../../gen/ganglion/vault/v1/vault_service.ts";
import { ANTHROPIC_URL, modelUrlOf, storedModelKeys, storeModelKey } from "../client/model-key.ts";
import { readClientEnv, writeClientEnv } from "./client-env.ts";
import { meshFiles } from "./mesh-files.ts";
import type { PartsContext } from "./parts-context.ts";
import type { ScriptedModel } from "./scripted-model.ts";

/** Enough for a mesh that starts on a busy machine. */
const TIMEOUT_MS = 20_000;

/**
 * firstLogins makes what clients need: an API key of which only the hash leaves this process, client.env, and, where no
 * model key is stored, the scripted model's key. Says whether the scripted model is to answer.
 */
export async function firstLogins(
  context: PartsContext & { scripted: ScriptedModel | undefined },
): Promise<{ isScripted: boolean }> {
  const tls = new TlsBundle(context.certificates.directory("operator"));
  const at = (port: string) => `127.0.0.1:${context.ports[port]}`;
  const keys = createClient(ApiKeyServiceService, at("session-1"), tls, "session", { image: null });
  const vaults = createClient(VaultServiceService, at("mcp-proxy-1"), tls, "mcp-proxy", { image: null });
  try {
    const [apiKey, isScripted] = await Promise.all([
      registeredKey(meshFiles(context.options.publicState).clientEnv, keys),
      prepareScriptedModel(vaults, context),
    ]);
    writeClientEnv(context.files.clientEnv, clientEnvironment(context, apiKey, at));
    return { isScripted };
  } finally {
    keys.close();
    vaults.close();
    tls.close();
  }
}

type KeyClient = ReturnType<typeof createClient<typeof ApiKeyServiceService>>;
type VaultClient = ReturnType<typeof createClient<typeof VaultServiceService>>;

/** The key of client.env goes on being good; a new one is made where there is none, or where it was revoked. */
async function registeredKey(clientEnv: string, client: KeyClient): Promise<string> {
  const known = readClientEnv(clientEnv)?.ANTHROPIC_API_KEY;
  if (known && (await register(client, known))) return known;
  const made = `gk-${randomBytes(32).toString("base64url")}`;
  await register(client, made);
  return made;
}

async function register(client: KeyClient, key: string): Promise<boolean> {
  const keySha256 = createHash("sha256").update(key).digest();
  const request = { keySha256, name: "ganglion up", workspaceId: "" };
  const { apiKey } = await client.createApiKey(request, { waitForReady: true, timeoutMs: TIMEOUT_MS });
  return apiKey !== undefined && apiKey.revokeTime === undefined;
}

async function prepareScriptedModel(
  client: VaultClient,
  { options, scripted }: { options: PartsContext["options"]; scripted: ScriptedModel | undefined },
): Promise<boolean> {
  if (!scripted) return false;
  const stored = await storedModelKeys(client);
  const hasRealKey = stored.some((credential) => modelUrlOf(credential).startsWith(ANTHROPIC_URL));
  if (hasRealKey && options.scriptedModel === "auto") return false;
  await storeModelKey(client, {
    baseUrl: scripted.url,
    secret: scripted.apiKey,
    displayName: "scripted model",
  });
  return true;
}

function clientEnvironment(
  { options, services, ports }: PartsContext,
  apiKey: string,
  at: (port: string) => string,
): Record<string, string> {
  // Paths as people reach them, not as the services do.
  const operator = join(meshFiles(options.publicState).tls, "operator");
  const addresses = services.map(({ name, service }) => {
    const variable = service.replaceAll("-", "_").toUpperCase();
    const number = name.endsWith("-1") ? "" : name.slice(name.lastIndexOf("-")).replace("-", "_");
    return [`GANGLION_${variable}${number}_ADDR`, at(name)];
  });
  return {
    ANTHROPIC_BASE_URL: `http://127.0.0.1:${ports.rest}`,
    ANTHROPIC_API_KEY: apiKey,
    GANGLION_GRPC_ADDR: at("grpc"),
    GANGLION_CA: join(operator, "ca.pem"),
    GANGLION_CERT: join(operator, "cert.pem"),
    GANGLION_KEY: join(operator, "key.pem"),
    ...Object.fromEntries(addresses),
    // The short name that the services use for it.
    GANGLION_PROXY_ADDR: at("mcp-proxy-1"),
  };
}
