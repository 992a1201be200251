import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { GitRepository } from "../../../services/gen/ganglion/mcpproxy/v1/binding_service.ts";
import { TestCa } from "../../kit/ca.ts";
import { GIT_ENV, GitUpstream } from "./git-upstream.ts";
import { HandKit, type TestHand } from "./hand-kit.ts";
import { briefly, ProxyKit } from "./proxy-kit.ts";
import { Recorder } from "./recorder.ts";

/** GitStage is a proxy with hands before it, a git server behind it, and a server that nobody may be led to. */
export class GitStage {
  readonly kit: ProxyKit;
  readonly hands: HandKit;
  readonly upstream: GitUpstream;
  readonly evil: Recorder;
  /** What the git server wants of whoever asks. */
  token = "";
  /** The folder that hands of a test work in. */
  work = "";
  readonly #ca: TestCa;

  private constructor(kit: ProxyKit, upstream: GitUpstream, evil: Recorder, ca: TestCa) {
    this.kit = kit;
    this.hands = new HandKit(kit);
    this.upstream = upstream;
    this.evil = evil;
    this.#ca = ca;
  }

  static async start(): Promise<GitStage> {
    const ca = await TestCa.create();
    const [upstream, evil] = await Promise.all([GitUpstream.start(ca), Recorder.start(ca)]);
    const caFile = join(ca.root, "upstream.pem");
    writeFileSync(caFile, ca.authority.certPem);
    const kit = await ProxyKit.start({
      GANGLION_PROXY_ALLOW_HTTP_HOSTS: `localhost:${upstream.port},localhost:${evil.port}`,
      GANGLION_UPSTREAM_CA_FILE: caFile,
    });
    return new GitStage(kit, upstream, evil, ca);
  }

  async stop(): Promise<void> {
    this.hands.stop();
    await this.kit.stop();
    this.upstream.stop();
    this.evil.stop();
    this.#ca.remove();
  }

  /** Begins a test: two new repositories, another token, an empty folder. */
  begin(): void {
    this.token = `ghp_${randomBytes(18).toString("hex")}`;
    this.upstream.token = this.token;
    this.upstream.listener = undefined;
    this.upstream.seen.length = 0;
    this.evil.connections = 0;
    this.work = mkdtempSync(join(tmpdir(), "ganglion-git-hand-"));
    this.upstream.make("acme/app");
    this.upstream.make("acme/other");
  }

  /** Removes what a test made. */
  clear(): void {
    const { root } = this.upstream;
    rmSync(this.work, { recursive: true, force: true });
    for (const name of readdirSync(root)) rmSync(join(root, name), { recursive: true });
  }

  /** URL of the git server. */
  get base(): string {
    return `https://localhost:${this.upstream.port}`;
  }

  /** What a hand may do with acme/app: fetch, and push branches. */
  grant(more: Partial<GitRepository> = {}): GitRepository {
    const url = `${this.base}/acme/app.git`;
    return { url, allowFetch: true, allowPush: true, refs: ["refs/heads/*"], ...more };
  }

  /** A hand with these repositories and the credential of acme/app. */
  hand(...repositories: GitRepository[]): Promise<TestHand> {
    const bearers = [{ url: `${this.base}/acme/app`, secret: this.token }];
    return this.hands.hand({ repositories, bearers });
  }

  /** The records about a hand's requests, in a few words each. */
  async rows({ sessionId }: TestHand): Promise<string[]> {
    const records = briefly(await this.kit.records(sessionId));
    return records.filter((row) => /^(decision|dispatch|outcome)/.test(row));
  }

  /** git as a hand has it: its remotes rewritten to the forwarder. */
  async git(of: TestHand, cwd: string, ...args: string[]): Promise<{ code: number; output: string }> {
    const config = join(this.work, `gitconfig-${of.port}`);
    const lines = of.setup.gitRewrites.map(
      ({ prefix, path }) => `[url "http://127.0.0.1:${of.port}${path}"]\n\tinsteadOf = ${prefix}\n`,
    );
    writeFileSync(config, lines.join(""));
    const env = { ...GIT_ENV, HOME: this.work, GIT_CONFIG_GLOBAL: config };
    const child = spawn("git", args, { cwd, env, stdio: ["ignore", "pipe", "pipe"] });
    let output = "";
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding("utf8").on("data", (text: string) => {
        output += text;
      });
    }
    const [code] = await once(child, "close");
    return { code: code as number, output };
  }

  /** The same where it has to go well; answers its output. */
  async good(of: TestHand, cwd: string, ...args: string[]): Promise<string> {
    const { code, output } = await this.git(of, cwd, ...args);
    assert.equal(code, 0, `git ${args.join(" ")}: ${output}`);
    return output;
  }

  /** Commits one file. */
  async commit(of: TestHand, cwd: string, name: string, text: string | Buffer): Promise<void> {
    writeFileSync(join(cwd, name), text);
    await this.good(of, cwd, "add", ".");
    await this.good(of, cwd, "commit", "-q", "-m", name);
  }

  /** Clones acme/app; answers its folder. */
  async clone(of: TestHand, ...args: string[]): Promise<string> {
    await this.good(of, this.work, ...args, "clone", "-q", `${this.base}/acme/app.git`, "app");
    return join(this.work, "app");
  }

  /** Asserts that no form of a secret is in any file of the hands, or in a text. */
  assertClean(secrets: readonly string[], text: string): void {
    const files = readdirSync(this.work, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => readFileSync(join(entry.parentPath, entry.name)));
    for (const bytes of [Buffer.from(text), ...files]) {
      for (const secret of secrets) {
        assert.ok(!bytes.includes(secret));
        assert.ok(!bytes.includes(Buffer.from(`x-access-token:${secret}`).toString("base64")));
      }
    }
  }
}
