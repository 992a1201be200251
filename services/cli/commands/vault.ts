import { newId } from "../../common/ids/new-id.ts";
import { sealPurposes } from "../../common/seal/seal-purposes.ts";
import { sealSecret } from "../../common/seal/seal-secret.ts";
import { Credential, Vault } from "../../gen/ganglion/vault/v1/vault_service.ts";
import { connectMesh, type Mesh } from "../client/connect-mesh.ts";
import { ANTHROPIC_URL, storeModelKey } from "../client/model-key.ts";
import { readSecret } from "../client/read-secret.ts";
import { CliError, EXIT } from "../terminal/exit-codes.ts";
import type { Command, Invocation } from "./command.ts";

/** `ganglion vault` keeps vaults and writes credentials; nothing ever shows a secret. */
export const vault: Command = {
  name: "vault",
  usage: "<create|list|put|model-key|archive> …",
  summary: "keep vaults and write credentials; secrets come from standard input",
  details: [
    "create <name>                      make a vault",
    "list [<vault>]                     list vaults, or the credentials of one",
    "put <vault> --mcp-url <url>        store a bearer token for an MCP server",
    "model-key [--url <url>]            store the key of the model API",
    "archive <vault> <credential>       remove a credential's secret",
    "",
    "Secrets are sealed here to mcp-proxy's key: nothing on the way can read them.",
  ],
  options: {
    "mcp-url": { type: "string" },
    url: { type: "string", default: ANTHROPIC_URL },
    name: { type: "string", default: "" },
  },
  arity: [1, 3],
  run: async (invocation) => {
    const [verb = "", ...args] = invocation.positionals;
    const act = Object.hasOwn(VERBS, verb) ? VERBS[verb] : undefined;
    if (!act) throw new CliError(`there is no vault ${verb}`, EXIT.usage, "ganglion help vault");
    const mesh = connectMesh(invocation.stateDir);
    try {
      await act(mesh, args, invocation);
      return EXIT.ok;
    } finally {
      mesh.close();
    }
  },
};

type Verb = (mesh: Mesh, args: string[], invocation: Invocation) => Promise<void>;

const VERBS: Record<string, Verb> = {
  create: async (mesh, args, { terminal }) => {
    const [displayName] = want(args, "create <name>", 1);
    const request = {
      requestId: newId("req"),
      displayName: displayName as string,
      metadata: {},
      workspaceId: "",
    };
    const made = (await mesh.vaults.createVault(request)).vault as Vault;
    terminal.object(Vault.toJSON(made));
    terminal.line(`made vault ${terminal.style("bold", made.id)}`);
  },
  list: async (mesh, args, invocation) => {
    const [vaultId] = args;
    return vaultId ? listCredentials(mesh, vaultId, invocation) : listVaults(mesh, invocation);
  },
  put: async (mesh, args, { options, terminal }) => {
    const [vaultId] = want(args, "put <vault> --mcp-url <url>", 1) as [string];
    const mcpServerUrl = options["mcp-url"];
    if (typeof mcpServerUrl !== "string")
      throw new CliError("--mcp-url says what the token is for", EXIT.usage);
    const key = await mesh.vaults.getSealingKey({});
    const purpose = { vaultId, purpose: "static_bearer", destination: mcpServerUrl };
    const secret = await sealSecret(key, purpose, await readSecret("token"));
    const made = (
      await mesh.vaults.createCredential({
        requestId: newId("req"),
        vaultId,
        displayName: String(options.name),
        metadata: {},
        auth: { $case: "staticBearer", value: { mcpServerUrl } },
        secret,
        refreshToken: undefined,
        clientSecret: undefined,
      })
    ).credential as Credential;
    terminal.object(Credential.toJSON(made));
    terminal.line(`stored credential ${terminal.style("bold", made.id)} for ${mcpServerUrl}`);
  },
  "model-key": async (mesh, args, { options, terminal }) => {
    want(args, "model-key", 0);
    const baseUrl = String(options.url);
    const secret = await readSecret("API key");
    const made = await storeModelKey(mesh.vaults, {
      baseUrl,
      secret,
      displayName: String(options.name) || "model key",
    });
    terminal.object(Credential.toJSON(made));
    terminal.line(`stored the key for ${baseUrl}; the next model request uses it`);
  },
  archive: async (mesh, args, { terminal }) => {
    const [vaultId, credentialId] = want(args, "archive <vault> <credential>", 2) as [string, string];
    const gone = (await mesh.vaults.archiveCredential({ vaultId, credentialId })).credential as Credential;
    terminal.object(Credential.toJSON(gone));
    terminal.line(`the secret of ${credentialId} is gone`);
  },
};

async function listVaults(mesh: Mesh, { terminal }: Invocation): Promise<void> {
  const rows = [["VAULT", "NAME", "CREATED"]];
  for (let pageToken = ""; ; ) {
    const page = await mesh.vaults.listVaults({
      pageSize: 100,
      pageToken,
      includeArchived: false,
      workspaceId: "",
    });
    for (const one of page.vaults) {
      terminal.object(Vault.toJSON(one));
      rows.push([
        one.id,
        one.isSystem ? `${one.displayName} (system)` : one.displayName,
        day(one.createTime),
      ]);
    }
    pageToken = page.nextPageToken;
    if (!pageToken) break;
  }
  terminal.table(rows);
}

async function listCredentials(mesh: Mesh, vaultId: string, { terminal }: Invocation): Promise<void> {
  const rows = [["CREDENTIAL", "FOR", "NAME", "UPDATED"]];
  for (let pageToken = ""; ; ) {
    const page = await mesh.vaults.listCredentials({
      vaultId,
      pageSize: 100,
      pageToken,
      includeArchived: false,
    });
    for (const one of page.credentials) {
      terminal.object(Credential.toJSON(one));
      const target = one.auth ? sealPurposes(vaultId, one.auth).secret.destination : "";
      rows.push([one.id, target, one.displayName, day(one.updateTime)]);
    }
    pageToken = page.nextPageToken;
    if (!pageToken) break;
  }
  terminal.table(rows);
}

function want(args: string[], usage: string, count: number): string[] {
  if (args.length !== count) throw new CliError(`usage: ganglion vault ${usage}`, EXIT.usage);
  return args;
}

function day(at: { seconds: bigint } | undefined): string {
  return at ? new Date(Number(at.seconds) * 1000).toISOString() : "";
}
