import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:https";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { issueCertificate } from "../../services/common/tls/issue-certificate.ts";
import { GitUpstream } from "../contract/mcp-proxy/git-upstream.ts";
import { TestCa } from "../kit/ca.ts";
import { bodiesOf, checkLog } from "../kit/check-log.ts";
import { NeedleIndex } from "../kit/secret-scan/needles.ts";
import { scanFiles } from "../kit/secret-scan/scan-files.ts";
import { scanProcess } from "../kit/secret-scan/scan-process.ts";
import { Stage, script } from "../kit/stage.ts";

const secretOf = () => `cnry${randomBytes(24).toString("hex")}`;

describe("a hand's way out, over a whole mesh", function () {
  this.timeout(90_000);
  let stage: Stage;
  let ca: TestCa;
  let git: GitUpstream;
  let shop: Server;
  let folder: string;
  const seen: { path: string; authorization: string }[] = [];
  const [token, key] = [secretOf(), secretOf()];
  const index = new NeedleIndex([
    { name: "token of the repository", secret: token },
    { name: "key of the shop", secret: key },
  ]);
  const shopHost = () => `localhost:${(shop.address() as AddressInfo).port}`;
  const repository = (name: string) => `https://localhost:${git.port}/acme/${name}`;

  before(async function () {
    this.timeout(180_000);
    ca = await TestCa.create();
    git = await GitUpstream.start(ca);
    git.token = token;
    git.make("acme/app");
    const leaf = await issueCertificate(ca.authority, { service: "vault", instance: "shop" });
    shop = createServer({ cert: leaf.certPem, key: leaf.keyPem }, (request, response) => {
      seen.push({ path: request.url ?? "", authorization: request.headers.authorization ?? "" });
      response.end("a shop\n");
    });
    shop.listen(0, "127.0.0.1");
    await once(shop, "listening");
    folder = mkdtempSync(join(tmpdir(), "ganglion-way-out-"));
    writeFileSync(join(folder, "ca.pem"), ca.authority.certPem);
    stage = await Stage.start({
      httpHosts: [shopHost(), `localhost:${git.port}`],
      upArgs: ["--upstream-ca", join(folder, "ca.pem")],
    });
    await stage.sdk.beta.vaults.credentials.create(stage.vaultId, {
      auth: {
        type: "environment_variable",
        secret_name: "SHOP_KEY",
        secret_value: key,
        networking: { type: "limited", allowed_hosts: ["localhost"] },
      },
    } as never);
  });
  after(async () => {
    await stage?.stop();
    git?.stop();
    shop?.closeAllConnections();
    shop?.close();
    ca?.remove();
    if (folder) rmSync(folder, { recursive: true, force: true });
  });

  const newSession = async (resources: object[]): Promise<string> => {
    const session = await stage.sdk.beta.sessions.create({
      agent: stage.agentId,
      environment_id: stage.environmentId,
      vault_ids: [stage.vaultId],
      resources,
    } as never);
    assert.deepEqual(session.vault_ids, [stage.vaultId]);
    return session.id;
  };
  const bash = (command: string) => script([{ calls: [{ name: "bash", input: { command } }] }]);
  const outputOf = (events: Awaited<ReturnType<Stage["turn"]>>): string =>
    bodiesOf(events, "agentToolResult")
      .flatMap(({ content }) => content)
      .map(({ data }) => (data?.$case === "json" ? data.value.toString() : ""))
      .map((json) => (JSON.parse(json) as { text?: string }).text ?? "")
      .join("\n");

  /** Every process of a hand, and its files, as the host sees them. */
  const scanHand = async (sessionId: string): Promise<string[]> => {
    const [hand] = (await stage.hands.listHands({ sessionId })).hands;
    const namespace = statSync(`/proc/${hand?.hostPid}/ns/pid`).ino;
    const pids = readdirSync("/proc").filter((name) => {
      try {
        return /^\d+$/.test(name) && statSync(`/proc/${name}/ns/pid`).ino === namespace;
      } catch {
        return false;
      }
    });
    assert.ok(pids.length >= 2, "the jail's first process and its agent");
    const files = join(stage.mesh.files.state, "sandbox/bubblewrap/hands", hand?.id ?? "");
    const findings = [...pids.flatMap((pid) => scanProcess(Number(pid), index).findings)];
    findings.push(...scanFiles(files, index).findings);
    return findings.map(({ needle, form, surface, place }) => `${needle} (${form}) in ${surface} ${place}`);
  };

  it("a repository is there at the first command, and git pushes; the shop gets its key; the hand has neither [A075]", async function () {
    const sessionId = await newSession([
      { type: "github_repository", url: repository("app"), authorization_token: token },
    ]);
    const events = await stage.turn(
      sessionId,
      bash(
        [
          "cat app/README.md app/.git/config",
          'env | grep SHOP_KEY; NO_PROXY= no_proxy= curl -sS -H "authorization: Bearer $SHOP_KEY" ' +
            `https://${shopHost()}/who`,
          "cd app && git config user.email a@b && git config user.name a && echo more > more && git add more",
          "git commit -qm more && git push -q origin HEAD:refs/heads/agent && echo pushed",
          "sleep 60 &",
        ].join("\n"),
      ),
    );
    const output = outputOf(events);
    assert.match(output, /^hello\n/, output);
    assert.match(output, new RegExp(`url = ${repository("app")}$`, "m"));
    assert.match(output, /SHOP_KEY=ganglion_placeholder_[a-z2-7]{26}/);
    assert.match(output, /^a shop$/m, output);
    assert.match(output, /^pushed$/m, output);
    assert.equal(bodiesOf(events, "sessionError").length, 0);
    assert.equal(git.git("acme/app", "log", "-1", "--format=%s", "refs/heads/agent"), "more");
    assert.deepEqual(seen, [{ path: "/who", authorization: `Bearer ${key}` }]);

    const log = await stage.log(sessionId);
    checkLog(log);
    const text = JSON.stringify(log, (_, value) => (typeof value === "bigint" ? String(value) : value));
    const told = [
      text,
      stage.mesh.log("sandbox-1"),
      stage.mesh.log("gateway-1"),
      stage.mesh.log("session-1"),
    ];
    assert.deepEqual(index.find(Buffer.from(told.join("\n"))), []);
    if (process.getuid?.() !== 0) this.skip();
    assert.deepEqual(await scanHand(sessionId), []);
    // The control: what a hand has is found in it.
    const control = new NeedleIndex([{ name: "control", secret: "a-word-that-only-this-hand-has" }]);
    await stage.turn(sessionId, bash("export WORD=a-word-that-only-this-hand-has; sleep 60 &"));
    const [hand] = (await stage.hands.listHands({ sessionId })).hands;
    const work = join(stage.mesh.files.state, "sandbox/bubblewrap/hands", hand?.id ?? "");
    assert.ok(readFileSync(join(work, "door", "outside", "gitconfig"), "utf8").includes("insteadOf"));
    const agents = readdirSync("/proc").filter((name) => {
      try {
        const isInside =
          statSync(`/proc/${name}/ns/pid`).ino === statSync(`/proc/${hand?.hostPid}/ns/pid`).ino;
        return /^\d+$/.test(name) && isInside;
      } catch {
        return false;
      }
    });
    assert.ok(agents.some((pid) => scanProcess(Number(pid), control).findings.length > 0));
  });

  it("repositories that cannot be cloned are told one by one, and the session goes on", async () => {
    const sessionId = await newSession([
      { type: "github_repository", url: repository("gone"), authorization_token: token },
      {
        type: "github_repository",
        url: repository("app"),
        authorization_token: `${token.slice(0, -1)}x`,
        mount_path: "/workspace/refused",
      },
    ]);
    const events = await stage.turn(sessionId, bash("ls; echo on"));
    assert.match(outputOf(events), /^on$/m);
    const errors = bodiesOf(events, "sessionError").map(({ errorType, repositoryUrl }) => [
      errorType,
      repositoryUrl,
    ]);
    assert.deepEqual(errors, [
      ["repository_not_found_error", repository("gone")],
      ["repository_authentication_error", repository("app")],
    ]);
    const shown = await stage.sdk.beta.sessions.events.list(sessionId);
    const error = shown.data.find(({ type }) => type === "session.error") as unknown as {
      error: { type: string; repository_url: string; retry_status: { type: string } };
    };
    assert.deepEqual(error.error.repository_url, repository("gone"));
    assert.deepEqual(error.error.retry_status, { type: "retrying" });
  });
});
