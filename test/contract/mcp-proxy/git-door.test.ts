import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { RecordKind } from "../../../services/gen/ganglion/audit/v1/audit_service.ts";
import { GitStage } from "./git-stage.ts";
import { GIT_ENV, type GitUpstream } from "./git-upstream.ts";
import type { HandKit } from "./hand-kit.ts";
import type { ProxyKit } from "./proxy-kit.ts";

describe("the git door", () => {
  let stage: GitStage;
  let kit: ProxyKit;
  let hands: HandKit;
  let upstream: GitUpstream;

  before(async function () {
    this.timeout(90_000);
    stage = await GitStage.start();
    ({ kit, hands, upstream } = stage);
  });
  after(() => stage?.stop());
  beforeEach(() => stage.begin());
  afterEach(() => stage.clear());

  for (const version of [0, 1, 2]) {
    it(`clones, fetches and pushes with protocol ${version}; the token is added outside [B113] [A075]`, async () => {
      const it = await stage.hand(stage.grant());
      const protocol = ["-c", `protocol.version=${version}`];
      const app = await stage.clone(it, ...protocol);
      assert.equal(readFileSync(join(app, "README.md"), "utf8"), "hello\n");
      await stage.commit(it, app, "new.txt", "mine");
      const pushed = await stage.good(it, app, ...protocol, "push", "origin", "main", "main:refs/heads/side");
      assert.equal(upstream.git("acme/app", "log", "-1", "--format=%s", "side"), "new.txt");
      await stage.good(it, app, ...protocol, "fetch", "-q", "origin");
      for (const { authorization, accept } of upstream.seen) {
        assert.equal(
          authorization,
          `Basic ${Buffer.from(`x-access-token:${stage.token}`).toString("base64")}`,
        );
        assert.equal(accept, "identity");
      }
      const remotes = await stage.good(it, app, "remote", "-v");
      assert.ok(!remotes.includes("@"));
      stage.assertClean([stage.token, it.token], remotes + pushed);
      const records = await kit.records(it.sessionId);
      const operations = new Set(records.map(({ operation }) => operation));
      assert.deepEqual([...operations].filter(Boolean), ["git"]);
      const push = records.find(({ target }) => target.includes("refs/heads/side"));
      assert.equal(
        push?.target,
        `push localhost:${upstream.port}/acme/app.git refs/heads/main refs/heads/side`,
      );
      assert.match(push?.credentialId ?? "", /^vcrd_/);
      const list = await stage.rows(it);
      assert.equal(list.length % 3, 0);
      assert.deepEqual(new Set(list), new Set(["decision allow", "dispatch", "outcome ok"]));
      for (const { kind, tlsVersion, peerSpkiSha256 } of records) {
        const isOutcome = kind === RecordKind.RECORD_KIND_OUTCOME;
        assert.equal(tlsVersion, isOutcome ? "TLSv1.3" : "");
        assert.match(peerSpkiSha256, isOutcome ? /^[0-9a-f]{64}$/ : /^$/);
      }
    });
  }

  it("carries large pushes and long questions, in pieces and compressed", async function () {
    this.timeout(60_000);
    const it = await stage.hand(stage.grant());
    const app = await stage.clone(it);
    const big = randomBytes(5 << 20);
    await stage.commit(it, app, "big.bin", big);
    addCommits(app, "main", 60, 1_700_000_000);
    await stage.good(it, app, "push", "-q", "origin", "main");
    assert.equal(upstream.git("acme/app", "cat-file", "-s", "main:big.bin"), String(big.length));
    const again = join(stage.work, "again");
    await stage.good(it, stage.work, "clone", "-q", `${stage.base}/acme/app`, "again");
    assert.ok(readFileSync(join(again, "big.bin")).equals(big));
    // Many commits that the server has not: what git has to offer is longer than 1,024 bytes, and so compressed.
    await stage.good(it, again, "checkout", "-q", "-b", "far", "HEAD~60");
    // Newer than all others: git offers the newest first.
    addCommits(again, "far", 40, Math.ceil(Date.now() / 1000) + 3600);
    await stage.commit(it, app, "more.txt", "more");
    await stage.good(it, app, "push", "-q", "origin", "main");
    await stage.good(it, again, "fetch", "-q", "origin");
    assert.ok(upstream.seen.some(({ encoding }) => encoding === "gzip"));
    assert.equal(upstream.git("acme/app", "fsck", "--full"), "");
  });

  /** Empty commits on a branch, all in one go. */
  const addCommits = (cwd: string, branch: string, count: number, begin: number) => {
    const ref = `refs/heads/${branch}`;
    const commits = Array.from({ length: count }, (_, i) => {
      const from = i === 0 ? `from ${ref}^0\n` : "";
      return `commit ${ref}\ncommitter t <t@example.test> ${begin + i} +0000\ndata 1\n${i % 10}\n${from}\n`;
    });
    execFileSync("git", ["fast-import", "--quiet"], { cwd, env: GIT_ENV, input: commits.join("") });
  };

  it("uses the host's credential where the repository has none, and none where there is none", async () => {
    const repositories = [stage.grant()];
    const byHost = await hands.hand({ repositories, bearers: [{ url: stage.base, secret: stage.token }] });
    await stage.clone(byHost);
    upstream.token = undefined;
    upstream.seen.length = 0;
    const open = await hands.hand({ repositories });
    await stage.good(open, stage.work, "clone", "-q", `${stage.base}/acme/app`, "open");
    assert.ok(
      upstream.seen.length > 0 && upstream.seen.every(({ authorization }) => authorization === undefined),
    );
  });

  it("says so when the server refuses the token, asks nobody for a password, and shows no secret [B114]", async () => {
    const it = await stage.hand(stage.grant());
    upstream.token = "another";
    const { code, output } = await stage.git(it, stage.work, "clone", `${stage.base}/acme/app`, "x");
    assert.notEqual(code, 0);
    assert.match(output, /UPSTREAM_UNAUTHORIZED/);
    assert.ok(!output.includes("www-authenticate") && !/could not read Username/.test(output));
    stage.assertClean([stage.token, it.token], output);
    assert.equal((await stage.rows(it)).at(-1), "outcome upstream_unauthorized");
    upstream.token = stage.token;
    upstream.listener = (_request, response) => void response.writeHead(404).end(stage.token);
    assert.match(
      (await stage.git(it, stage.work, "clone", `${stage.base}/acme/app`, "x")).output,
      /REPO_NOT_FOUND|not found/,
    );
  });

  it("shows the remote's text without what a terminal would act upon, and without the token [A077] [B114]", async () => {
    const it = await stage.hand(stage.grant());
    const app = await stage.clone(it);
    await stage.commit(it, app, "a.txt", "a");
    const bidi = "\u202eevil\u2066";
    upstream.hook(
      "acme/app",
      `printf '\\033[31mred\\033]0;title\\007 \\302\\233 ${bidi} key ${stage.token} end\\n' >&2; exit 1`,
    );
    const { code, output } = await stage.git(it, app, "-c", "color.ui=never", "push", "origin", "main");
    assert.notEqual(code, 0);
    assert.match(output, /\?\[31mred\?\]0;title\? \?\? \?\?\?evil\?\?\? key \[REDACTED:vcrd_\w+\] end/);
    assert.doesNotMatch(output.replace(/[\n\r\t]/g, ""), /[\p{Cc}\u202a-\u202e\u2066-\u2069]/u);
    const outcome = (await kit.records(it.sessionId)).filter(({ kind }) => kind === 3).at(-1);
    assert.equal(outcome?.redactions, 1n);
    stage.assertClean([stage.token], output);
  });

  it("refuses an answer that is not git's, whatever it says of itself", async () => {
    const it = await stage.hand(stage.grant());
    const type = "application/x-git-upload-pack-advertisement";
    for (const [contentType, body] of [
      ["text/html", `<h1>${stage.token}</h1>`],
      [type, `<h1>${stage.token}</h1>`],
      [type, "0010# service=x"],
    ]) {
      upstream.listener = (_request, response) => {
        response.writeHead(200, { "content-type": contentType }).end(body);
      };
      const { code, output } = await stage.git(it, stage.work, "clone", `${stage.base}/acme/app`, "x");
      assert.notEqual(code, 0);
      assert.ok(!output.includes(stage.token));
      assert.equal((await stage.rows(it)).at(-1), "outcome upstream_malformed");
    }
  });

  it("cuts a transfer within 5 s of the session's end, and refuses the next [L7]", async function () {
    this.timeout(20_000);
    const it = await stage.hand(stage.grant());
    const began = new Promise<void>((resolve) => {
      upstream.listener = (_request, response) => {
        response.writeHead(200, { "content-type": "application/x-git-upload-pack-advertisement" });
        response.write("001e# service=git-upload-pack\n0000");
        resolve();
      };
    });
    const cloning = stage.git(it, stage.work, "clone", `${stage.base}/acme/app`, "x");
    await began;
    const endedAt = performance.now();
    await kit.raiseFence(it.sessionId, 1n, true);
    assert.notEqual((await cloning).code, 0);
    assert.ok(performance.now() - endedAt < 5000);
    upstream.listener = undefined;
    assert.match(
      (await stage.git(it, stage.work, "clone", `${stage.base}/acme/app`, "x")).output,
      /SESSION_ENDED/,
    );
    const list = await stage.rows(it);
    assert.ok(list.includes("outcome session_ended"));
    assert.equal(list.at(-1), "decision deny SESSION_ENDED");
  });

  it("leaves nothing behind of a clone that is interrupted [A075]", async () => {
    const it = await stage.hand(stage.grant());
    const began = new Promise<void>((resolve) => {
      upstream.listener = (_request, response) => {
        response.writeHead(200, { "content-type": "application/x-git-upload-pack-advertisement" });
        response.write("001e# service=git-upload-pack\n0000");
        resolve();
      };
    });
    const socket = connect(it.port, "127.0.0.1");
    const path = `/git/localhost:${upstream.port}/acme/app/info/refs?service=git-upload-pack`;
    socket.write(`GET ${path} HTTP/1.1\r\nhost: 127.0.0.1:3128\r\n\r\n`);
    await began;
    await once(socket, "data");
    socket.destroy();
    while ((await stage.rows(it)).length < 3) await new Promise((resolve) => setImmediate(resolve));
    assert.equal((await stage.rows(it)).at(-1), "outcome cancelled");
    stage.assertClean([stage.token, it.token], "");
  });
});
