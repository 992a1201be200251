import { newId } from "../../common/ids/new-id.ts";
import { Credential, CredentialValidation, Vault } from "../../gen/ganglion/vault/v1/vault_service.ts";
import { bootstrapVault } from "../client/bootstrap-vault.ts";
import { connectAccount } from "../client/connect-account.ts";
import { connectMesh, type Mesh } from "../client/connect-mesh.ts";
import { listCredentials, listVaults } from "../client/list-vaults.ts";
import { ANTHROPIC_URL, storeModelKey } from "../client/model-key.ts";
import { readSecret } from "../client/read-secret.ts";
import { changeCredential, putCredential, rotateCredential } from "../client/write-credential.ts";
import { CliError, EXIT } from "../terminal/exit-codes.ts";
import type { Command, Invocation } from "./command.ts";
import { findVerb } from "./find-verb.ts";

/** `ganglion vault` keeps vaults and writes credentials; nothing ever shows a secret. */
export const vault: Command = {
  name: "vault",
  usage: "<create|list|show|put|connect|rotate|change|archive|delete|validate|model-key|bootstrap> …",
  summary: "keep vaults and write credentials; secrets come from standard input",
  details: [
    "create <name> [--decoy]            make a vault; a decoy is one that nobody may use, and whoever tries is noticed",
    "list [<vault>] [--archived]        list vaults, or the credentials of one",
    "show <vault> [<credential>]        show a record; nothing shows a secret",
    "put <vault> --mcp-url <url>        store a bearer token for an MCP server",
    "    --oauth                        store OAuth tokens instead, with --expires-at, and to refresh them",
    "                                   --client-id, --token-endpoint, --token-auth, --scope, --resource",
    "put <vault> --env <name>           store a secret that hands know as an environment variable, for",
    "                                   --allow-host <host> (several), or --any-host; --in header, body or both",
    "connect <mcp server url>           log in there with OAuth: shows an address to open in a browser, or opens it",
    "                                   with --open; --vault, --name, --scope, --port, --client-id, --token-auth",
    "rotate <vault> <credential>        store a new secret; --which token, refresh-token or client-secret",
    "change <vault> [<credential>]      change --name, --allow-host, --any-host, --in, --scope, --expires-at",
    "archive <vault> [<credential>]     remove secrets and keep the records",
    "delete <vault> [<credential>]      remove secrets and records",
    "validate <vault> <credential>      try a credential at its MCP server",
    "model-key [--url <url>]            store the key of the model API",
    "bootstrap --vault-addr <url>       set up a Vault or OpenBao of yours with a token that may do that;",
    "                                   --ca-file, --namespace, --audit-file, --token-fd, --supervisor-token-file",
    "",
    "Secrets come from standard input, one a line in the order in which they are asked for, or are typed without",
    "an echo. They are sealed here to mcp-proxy's key: nothing on the way can read them.",
  ],
  options: {
    "mcp-url": { type: "string" },
    oauth: { type: "boolean", default: false },
    "expires-at": { type: "string" },
    "client-id": { type: "string" },
    "token-endpoint": { type: "string" },
    "token-auth": { type: "string", default: "none" },
    scope: { type: "string" },
    resource: { type: "string", default: "" },
    env: { type: "string" },
    "allow-host": { type: "string", multiple: true },
    "any-host": { type: "boolean", default: false },
    in: { type: "string" },
    vault: { type: "string" },
    open: { type: "boolean", default: false },
    port: { type: "string" },
    which: { type: "string", default: "token" },
    url: { type: "string", default: ANTHROPIC_URL },
    name: { type: "string" },
    archived: { type: "boolean", default: false },
    decoy: { type: "boolean", default: false },
    "vault-addr": { type: "string" },
    "ca-file": { type: "string" },
    namespace: { type: "string" },
    "audit-file": { type: "string" },
    "token-fd": { type: "string" },
    "supervisor-token-file": { type: "string" },
  },
  arity: [1, 3],
  run: async (invocation) => {
    const [verb = "", ...args] = invocation.positionals;
    if (verb === "bootstrap") return bootstrapVault(invocation);
    const act = findVerb("vault", VERBS, verb);
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
  create: async ({ vaults }, args, { options, terminal }) => {
    const [displayName] = want(args, "create <name>", 1) as [string];
    const isDecoy = options.decoy === true;
    const request = { requestId: newId("req"), displayName, metadata: {}, workspaceId: "", isDecoy };
    const made = (await vaults.createVault(request)).vault as Vault;
    terminal.object(Vault.toJSON(made));
    terminal.line(`made vault ${terminal.style("bold", made.id)}`);
  },
  list: async (mesh, args, invocation) => {
    const [vaultId] = args;
    return vaultId ? listCredentials(mesh, vaultId, invocation) : listVaults(mesh, invocation);
  },
  show: async ({ vaults }, args, { terminal }) => {
    const [vaultId, credentialId] = wantOneOrTwo(args, "show <vault> [<credential>]");
    const shown = credentialId
      ? Credential.toJSON((await vaults.getCredential({ vaultId, credentialId })).credential as Credential)
      : Vault.toJSON((await vaults.getVault({ vaultId, workspaceId: "" })).vault as Vault);
    terminal.object(shown);
    terminal.line(JSON.stringify(shown, null, 2));
  },
  put: async (mesh, args, { options, terminal }) => {
    const [vaultId] = want(args, "put <vault> --mcp-url <url> | --env <name>", 1) as [string];
    const { made, target } = await putCredential(mesh.vaults, vaultId, options);
    terminal.object(Credential.toJSON(made));
    terminal.line(`stored credential ${terminal.style("bold", made.id)} for ${target}`);
  },
  connect: async (mesh, args, invocation) => {
    const [url] = want(args, "connect <mcp server url> [--vault <vault>]", 1) as [string];
    const made = await connectAccount(mesh, url, invocation);
    const { terminal } = invocation;
    terminal.object(Credential.toJSON(made));
    terminal.line(`connected: credential ${terminal.style("bold", made.id)} for ${url}`);
  },
  rotate: async (mesh, args, { options, terminal }) => {
    const [vaultId, credentialId] = want(args, "rotate <vault> <credential>", 2) as [string, string];
    const changed = await rotateCredential(mesh.vaults, { vaultId, credentialId }, String(options.which));
    terminal.object(Credential.toJSON(changed));
    terminal.line(`${credentialId} has a new secret; the next call uses it`);
  },
  change: async (mesh, args, { options, terminal }) => {
    const [vaultId, credentialId] = wantOneOrTwo(args, "change <vault> [<credential>]");
    if (credentialId) {
      const changed = await changeCredential(mesh.vaults, { vaultId, credentialId }, options);
      terminal.object(Credential.toJSON(changed));
    } else {
      if (options.name === undefined) throw new CliError("--name is what a vault can change", EXIT.usage);
      const request = { vaultId, displayName: String(options.name), metadataSet: {}, metadataRemove: [] };
      terminal.object(Vault.toJSON((await mesh.vaults.updateVault(request)).vault as Vault));
    }
    terminal.line(`changed ${credentialId ?? vaultId}`);
  },
  archive: async ({ vaults }, args, { terminal }) => {
    const [vaultId, credentialId] = wantOneOrTwo(args, "archive <vault> [<credential>]");
    if (credentialId) {
      const gone = (await vaults.archiveCredential({ vaultId, credentialId })).credential as Credential;
      terminal.object(Credential.toJSON(gone));
      return terminal.line(`the secret of ${credentialId} is gone`);
    }
    terminal.object(Vault.toJSON((await vaults.archiveVault({ vaultId })).vault as Vault));
    return terminal.line(`${vaultId} is out of use; the secrets in it are gone`);
  },
  delete: async ({ vaults }, args, { terminal }) => {
    const [vaultId, credentialId] = wantOneOrTwo(args, "delete <vault> [<credential>]");
    if (credentialId) await vaults.deleteCredential({ vaultId, credentialId });
    else await vaults.deleteVault({ vaultId });
    terminal.object({ deleted: credentialId ?? vaultId });
    terminal.line(`${credentialId ?? vaultId} is gone`);
  },
  validate: async ({ vaults }, args, { terminal }) => {
    const [vaultId, credentialId] = want(args, "validate <vault> <credential>", 2) as [string, string];
    const { validation } = await vaults.validateCredential({ vaultId, credentialId });
    const shown = CredentialValidation.toJSON(validation as CredentialValidation);
    terminal.object(shown);
    terminal.line(JSON.stringify(shown, null, 2));
  },
  "model-key": async (mesh, args, { options, terminal }) => {
    want(args, "model-key", 0);
    const baseUrl = String(options.url);
    const secret = await readSecret("API key");
    const displayName = options.name === undefined ? "model key" : String(options.name);
    const made = await storeModelKey(mesh.vaults, { baseUrl, secret, displayName });
    terminal.object(Credential.toJSON(made));
    terminal.line(`stored the key for ${baseUrl}; the next model request uses it`);
  },
};

function want(args: string[], usage: string, count: number): string[] {
  if (args.length !== count) throw new CliError(`usage: ganglion vault ${usage}`, EXIT.usage);
  return args;
}

function wantOneOrTwo(args: string[], usage: string): [string, string | undefined] {
  const [first, second] = args;
  if (first === undefined || args.length > 2)
    throw new CliError(`usage: ganglion vault ${usage}`, EXIT.usage);
  return [first, second];
}
