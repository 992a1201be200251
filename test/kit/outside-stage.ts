import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:https";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { issueCertificate } from "../../services/common/tls/issue-certificate.ts";
import type { Event } from "../../services/gen/ganglion/types/v1/event.ts";
import { GitUpstream } from "../contract/mcp-proxy/git-upstream.ts";
import { TestCa } from "./ca.ts";
import { bodiesOf } from "./check-log.ts";
import { Stage, script } from "./stage.ts";

/**
 * OutsideStage is a stage with servers outside that hands may reach over TLS: a git server with the repository `acme/app`,
 * and a shop that answers with the key it was sent, in a few forms. The mesh is told their authority with `--upstream-ca`.
 */
export class OutsideStage {
  readonly git: GitUpstream;
  readonly shopHost: string;
  /** What the shop was asked. */
  readonly shopSaw: readonly { path: string; authorization: string }[];
  readonly stage: Stage;
  readonly #release: () => void;

  private constructor(
    parts: Pick<OutsideStage, "git" | "shopHost" | "shopSaw" | "stage">,
    release: () => void,
  ) {
    this.git = parts.git;
    this.shopHost = parts.shopHost;
    this.shopSaw = parts.shopSaw;
    this.stage = parts.stage;
    this.#release = release;
  }

  /** Starts everything; the repository opens to this token. */
  static async start(repositoryToken: string): Promise<OutsideStage> {
    const ca = await TestCa.create();
    const git = await GitUpstream.start(ca);
    git.token = repositoryToken;
    git.make("acme/app");
    const shopSaw: { path: string; authorization: string }[] = [];
    const shop = await startShop(ca, shopSaw);
    const folder = mkdtempSync(join(tmpdir(), "ganglion-outside-"));
    const release = () => {
      git.stop();
      shop.closeAllConnections();
      shop.close();
      ca.remove();
      rmSync(folder, { recursive: true, force: true });
    };
    try {
      const authority = join(folder, "ca.pem");
      writeFileSync(authority, ca.authority.certPem);
      const shopHost = `localhost:${(shop.address() as AddressInfo).port}`;
      const stage = await Stage.start({
        httpHosts: [shopHost, `localhost:${git.port}`],
        upArgs: ["--upstream-ca", authority],
      });
      return new OutsideStage({ git, shopHost, shopSaw, stage }, release);
    } catch (error) {
      release();
      throw error;
    }
  }

  /** URL of a repository at the git server. */
  repository(name: string): string {
    return `https://localhost:${this.git.port}/acme/${name}`;
  }

  /** Makes a session with repositories, over REST; returns its id. */
  async newSession(
    repositories: readonly { name: string; token: string; mountPath?: string }[],
  ): Promise<string> {
    const { stage } = this;
    const session = await stage.sdk.beta.sessions.create({
      agent: stage.agentId,
      environment_id: stage.environmentId,
      vault_ids: [stage.vaultId],
      resources: repositories.map(({ name, token, mountPath }) => ({
        type: "github_repository",
        url: this.repository(name),
        authorization_token: token,
        ...(mountPath === undefined ? {} : { mount_path: mountPath }),
      })),
    } as never);
    // The vault that their tokens are in is the session's own, and not shown.
    assert.deepEqual(session.vault_ids, [stage.vaultId]);
    return session.id;
  }

  /** Stops all of it. */
  async stop(): Promise<void> {
    await this.stage.stop();
    this.#release();
  }
}

/** A message that makes the scripted model run one command in the hand. */
export function bash(command: string): string {
  return script([{ calls: [{ name: "bash", input: { command } }] }]);
}

/** What the commands of a turn printed. */
export function outputOf(events: readonly Event[]): string {
  return bodiesOf(events, "agentToolResult")
    .flatMap(({ content }) => content)
    .map(({ data }) => (data?.$case === "json" ? data.value.toString() : ""))
    .map((json) => (JSON.parse(json) as { text?: string }).text ?? "")
    .join("\n");
}

async function startShop(ca: TestCa, saw: { path: string; authorization: string }[]): Promise<Server> {
  const leaf = await issueCertificate(ca.authority, { service: "vault", instance: "shop" });
  const shop = createServer({ cert: leaf.certPem, key: leaf.keyPem }, (request, response) => {
    const said = request.headers.authorization ?? "";
    saw.push({ path: request.url ?? "", authorization: said });
    response.setHeader("x-echo", said);
    const forms = [said, Buffer.from(said).toString("base64"), Buffer.from(said).toString("hex")];
    response.end(`a shop\n${forms.join("\n")}\n`);
  });
  shop.listen(0, "127.0.0.1");
  await once(shop, "listening");
  return shop;
}
