import { randomBytes, randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { HostileAuthorization } from "./hostile-authorization.ts";
import { NO_CHANGE, ProxyKit } from "./proxy-kit.ts";

/** A server that is asked nothing. */
export const SERVER = "https://mcp.example.test/mcp";
const REDIRECT = "http://127.0.0.1:48123/callback";

/** A line of the audit log. */
export type Line = Record<string, string>;

/** What a method changes, once it is asked. */
export interface Prepared {
  act: () => Promise<unknown>;
  /** What its records must name; undefined where only the answer says it. */
  vaultId?: string;
  credentialId?: string;
}

/** A change as its records must show it. */
export interface Change {
  operation: string;
  /** Version of the secret that it writes; 0 = it writes none. */
  version: number;
  /** Each credential of the vault loses its secret under a record of its own. */
  removes?: boolean;
  prepare: (stage: ChangeStage) => Promise<Prepared>;
}

/** mcp-proxy, an authorization server that lies as it is told, and what was ever secret. */
export class ChangeStage {
  readonly kit: ProxyKit;
  readonly hostile: HostileAuthorization;
  /** Whatever may be in no record. */
  readonly secrets: string[] = [];

  private constructor(kit: ProxyKit, hostile: HostileAuthorization) {
    this.kit = kit;
    this.hostile = hostile;
  }

  static async start(): Promise<ChangeStage> {
    const hostile = await HostileAuthorization.start();
    const kit = await ProxyKit.start({ GANGLION_PROXY_ALLOW_HTTP_HOSTS: hostile.host });
    return new ChangeStage(kit, hostile);
  }

  async stop(): Promise<void> {
    await this.kit?.stop();
    await this.hostile?.stop();
  }

  /** A secret that will be looked for in the log. */
  secret(): string {
    const secret = `cnry_${randomBytes(24).toString("hex")}`;
    this.secrets.push(secret);
    return secret;
  }

  /** A request for a new credential. */
  async asked(vaultId: string, requestId = "", mcpServerUrl = SERVER) {
    return {
      ...{ requestId, vaultId, displayName: "token", metadata: { team: "a" } },
      auth: { $case: "staticBearer" as const, value: { mcpServerUrl } },
      secret: await this.kit.seal(this.secret(), vaultId, mcpServerUrl),
      ...{ refreshToken: undefined, clientSecret: undefined },
    };
  }

  /** A vault with a credential in it. */
  async made(url = SERVER): Promise<{ vaultId: string; credentialId: string }> {
    const vaultId = await this.kit.makeVault();
    const { credential } = await (await this.kit.vaults()).createCredential(
      await this.asked(vaultId, "", url),
    );
    return { vaultId, credentialId: credential?.id ?? "" };
  }

  /** Place of the log's newest record. */
  async head(): Promise<string> {
    return (await this.kit.sql("ganglion_owner", "SELECT sequence FROM proxy.audit_head"))[0].sequence;
  }

  /** All lines since then. */
  async lines(since = "0"): Promise<string[]> {
    const text =
      "SELECT proxy.audit_line(r) AS line FROM proxy.audit_records r WHERE sequence > $1 ORDER BY sequence";
    return (await this.kit.sql("ganglion_owner", text, [since])).map(({ line }) => line);
  }

  /** Those of changes. */
  async changes(since: string): Promise<Line[]> {
    const all = (await this.lines(since)).map((line) => JSON.parse(line) as Line);
    return all.filter(({ operation }) => operation?.startsWith("vault."));
  }

  /** Everything that a change may touch in the database. */
  async rows(): Promise<string> {
    const tables = ["vaults", "credentials", "oauth_authorizations", "oauth_renewals"];
    const of = tables.map(
      (table) => `(SELECT jsonb_agg(t ORDER BY t::text) FROM proxy.${table} t) AS ${table}`,
    );
    return JSON.stringify(await this.kit.sql("ganglion_owner", `SELECT ${of.join(", ")}`));
  }

  /** What Vault was asked for about credentials, as its own log has it. */
  asksAtVault(): { id: string; time: string; operation: string; path: string }[] {
    return readFileSync(this.kit.vault.auditFile, "utf8")
      .split("\n")
      .filter((line) => line !== "")
      .map((line) => JSON.parse(line))
      .filter(({ type, request }) => {
        return type === "request" && /^ganglion\/(data|metadata|destroy)\/vaults\//.test(request?.path ?? "");
      })
      .map(({ time, request }) => ({ ...request, time }));
  }

  /** Runs with a log that takes nothing. */
  async withoutLog(work: () => Promise<void>): Promise<void> {
    const write = "EXECUTE ON FUNCTION proxy.write_records(jsonb)";
    await this.kit.sql("ganglion_owner", `REVOKE ${write} FROM ganglion_proxy`);
    try {
      await work();
    } finally {
      await this.kit.sql("ganglion_owner", `GRANT ${write} TO ganglion_proxy`);
    }
  }
}

/** Every method that changes something. */
export const CHANGES: Record<string, Change> = {
  createVault: {
    ...{ operation: "vault.create_vault", version: 0 },
    prepare: async ({ kit }) => {
      const request = {
        requestId: randomUUID(),
        displayName: "x",
        metadata: {},
        workspaceId: "",
        isDecoy: false,
      };
      return { act: async () => (await kit.vaults()).createVault(request) };
    },
  },
  getSystemVault: {
    ...{ operation: "vault.create_vault", version: 0 },
    prepare: async ({ kit }) => ({
      act: async () => (await kit.vaults()).getSystemVault({ workspaceId: "" }),
      vaultId: "vlt_system_default",
    }),
  },
  updateVault: {
    ...{ operation: "vault.update_vault", version: 0 },
    prepare: async ({ kit }) => {
      const vaultId = await kit.makeVault();
      const change = { displayName: "y", metadataSet: {}, metadataRemove: [] };
      return { vaultId, act: async () => (await kit.vaults()).updateVault({ vaultId, ...change }) };
    },
  },
  archiveVault: {
    ...{ operation: "vault.archive_vault", version: 0, removes: true },
    prepare: async (stage) => {
      const { vaultId } = await stage.made();
      return { vaultId, act: async () => (await stage.kit.vaults()).archiveVault({ vaultId }) };
    },
  },
  deleteVault: {
    ...{ operation: "vault.delete_vault", version: 0, removes: true },
    prepare: async (stage) => {
      const { vaultId } = await stage.made();
      return { vaultId, act: async () => (await stage.kit.vaults()).deleteVault({ vaultId }) };
    },
  },
  createCredential: {
    ...{ operation: "vault.create_credential", version: 1 },
    prepare: async (stage) => {
      const vaultId = await stage.kit.makeVault();
      const request = await stage.asked(vaultId, randomUUID());
      return { vaultId, act: async () => (await stage.kit.vaults()).createCredential(request) };
    },
  },
  updateCredential: {
    ...{ operation: "vault.update_credential", version: 2 },
    prepare: async (stage) => {
      const made = await stage.made();
      const secret = await stage.kit.seal(stage.secret(), made.vaultId, SERVER);
      const change = { ...NO_CHANGE, ...made, secret };
      return { ...made, act: async () => (await stage.kit.vaults()).updateCredential(change) };
    },
  },
  archiveCredential: {
    ...{ operation: "vault.archive_credential", version: 0 },
    prepare: async (stage) => {
      const made = await stage.made();
      return { ...made, act: async () => (await stage.kit.vaults()).archiveCredential(made) };
    },
  },
  deleteCredential: {
    ...{ operation: "vault.delete_credential", version: 0 },
    prepare: async (stage) => {
      const made = await stage.made();
      return { ...made, act: async () => (await stage.kit.vaults()).deleteCredential(made) };
    },
  },
  validateCredential: {
    ...{ operation: "vault.validate_credential", version: 0 },
    prepare: async (stage) => {
      const made = await stage.made(stage.hostile.url);
      return { ...made, act: async () => (await stage.kit.vaults()).validateCredential(made) };
    },
  },
  finishAuthorization: {
    ...{ operation: "vault.finish_authorization", version: 1 },
    prepare: async (stage) => {
      const { kit, hostile } = stage;
      const vaultId = await kit.makeVault();
      const { state } = await (await kit.vaults()).startAuthorization({
        ...{ vaultId, mcpServerUrl: hostile.url, displayName: "", metadata: {}, redirectUri: REDIRECT },
        ...{ scope: "", clientId: "", tokenEndpointAuth: 0, clientSecret: undefined },
      });
      const tokens = { access_token: stage.secret(), refresh_token: stage.secret(), token_type: "Bearer" };
      hostile.token = { status: 200, body: JSON.stringify({ ...tokens, expires_in: 3600 }) };
      const code = stage.secret();
      stage.secrets.push(state);
      const finish = { state, code, iss: hostile.issuer };
      return { vaultId, act: async () => (await kit.vaults()).finishAuthorization(finish) };
    },
  },
};
