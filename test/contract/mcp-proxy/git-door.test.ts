import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { GitRepository } from "../../../services/gen/ganglion/mcpproxy/v1/binding_service.ts";
import { TestCa } from "../../kit/ca.ts";
import { GIT_ENV, GitUpstream } from "./git-upstream.ts";
import { HandKit, Recorder, rawFrom, type TestHand } from "./hand-kit.ts";
import { briefly, ProxyKit } from "./proxy-kit.ts";

const BRANCHES = ["refs/heads/*"];

describe("the git door", () => {
  let kit: ProxyKit;
  let hands: HandKit;
  let ca: TestCa;
  let upstream: GitUpstream;
  let evil: Recorder;
  let token: string;
  let work: string;

  before(async function () {
    this.timeout(90_000);
    ca = await TestCa.create();
    [upstream, evil] = await Promise.all([GitUpstream.start(ca), Recorder.start(ca)]);
    const caFile = join(ca.root, "upstream.pem");
    writeFileSync(caFile, ca.authority.certPem);
    kit = await ProxyKit.start({
      GANGLION_PROXY_ALLOW_HTTP_HOSTS: `localhost:${upstream.port},localhost:${evil.port}`,
      GANGLION_UPSTREAM_CA_FILE: caFile,
    });
    hands = new HandKit(kit);
  });

  after(async () => {
    hands?.stop();
    await kit?.stop();
    upstream?.stop();
    evil?.stop();
    ca?.remove();
  });

  beforeEach(() => {
    token = `ghp_${randomBytes(18).toString("hex")}`;
    upstream.token = token;
    upstream.listener = undefined;
    upstream.seen.length = 0;
    evil.connections = 0;
    work = mkdtempSync(join(tmpdir(), "ganglion-git-hand-"));
    upstream.make("acme/app");
    upstream.make("acme/other");
  });

  afterEach(() => {
    rmSync(work, { recursive: true, force: true });
    for (const name of readdirSync(upstream.root)) rmSync(join(upstream.root, name), { recursive: true });
  });

  const base = () => `https://localhost:${upstream.port}`;
  const grant = (more: Partial<GitRepository> = {}): GitRepository => ({
    url: `${base()}/acme/app.git`,
    allowFetch: true,
    allowPush: true,
    refs: BRANCHES,
    ...more,
  });
  const hand = (...repositories: GitRepository[]) =>
    hands.hand({ repositories, bearers: [{ url: `${base()}/acme/app`, secret: token }] });
  const rows = async (of: TestHand) =>
    briefly(await kit.records(of.sessionId)).filter((row) => /^(decision|dispatch|outcome)/.test(row));

  /** git as a hand has it: its remotes rewritten to the forwarder. */
  const git = async (of: TestHand, cwd: string, ...args: string[]) => {
    const config = join(work, `gitconfig-${of.port}`);
    const lines = of.setup.gitRewrites.map(
      ({ prefix, path }) => `[url "http://127.0.0.1:${of.port}${path}"]\n\tinsteadOf = ${prefix}\n`,
    );
    writeFileSync(config, lines.join(""));
    const env = { ...GIT_ENV, HOME: work, GIT_CONFIG_GLOBAL: config };
    const child = spawn("git", args, { cwd, env, stdio: ["ignore", "pipe", "pipe"] });
    let output = "";
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding("utf8").on("data", (text: string) => {
        output += text;
      });
    }
    const [code] = await once(child, "close");
    return { code: code as number, output };
  };
  const good = async (of: TestHand, cwd: string, ...args: string[]) => {
    const { code, output } = await git(of, cwd, ...args);
    assert.equal(code, 0, `git ${args.join(" ")}: ${output}`);
    return output;
  };
  const commit = async (of: TestHand, cwd: string, name: string, text: string | Buffer) => {
    writeFileSync(join(cwd, name), text);
    await good(of, cwd, "add", ".");
    await good(of, cwd, "commit", "-q", "-m", name);
  };
  const clone = async (of: TestHand, ...args: string[]) => {
    await good(of, work, ...args, "clone", "-q", `${base()}/acme/app.git`, "app");
    return join(work, "app");
  };

  for (const version of [0, 1, 2]) {
    it(`clones, fetches and pushes with protocol ${version}; the token is added outside [B113] [A075]`, async () => {
      const it = await hand(grant());
      const protocol = ["-c", `protocol.version=${version}`];
      const app = await clone(it, ...protocol);
      assert.equal(readFileSync(join(app, "README.md"), "utf8"), "hello\n");
      await commit(it, app, "new.txt", "mine");
      const pushed = await good(it, app, ...protocol, "push", "origin", "main", "main:refs/heads/side");
      assert.equal(upstream.git("acme/app", "log", "-1", "--format=%s", "side"), "new.txt");
      await good(it, app, ...protocol, "fetch", "-q", "origin");
      for (const { authorization, accept } of upstream.seen) {
        assert.equal(authorization, `Basic ${Buffer.from(`x-access-token:${token}`).toString("base64")}`);
        assert.equal(accept, "identity");
      }
      const remotes = await good(it, app, "remote", "-v");
      assert.ok(!remotes.includes("@"));
      assertClean(work, [token, it.token], remotes + pushed);
      const records = await kit.records(it.sessionId);
      const operations = new Set(records.map(({ operation }) => operation));
      assert.deepEqual([...operations].filter(Boolean), ["git"]);
      const push = records.find(({ target }) => target.includes("refs/heads/side"));
      assert.equal(
        push?.target,
        `push localhost:${upstream.port}/acme/app.git refs/heads/main refs/heads/side`,
      );
      assert.match(push?.credentialId ?? "", /^vcrd_/);
      const list = await rows(it);
      assert.equal(list.length % 3, 0);
      assert.deepEqual(new Set(list), new Set(["decision allow", "dispatch", "outcome ok"]));
    });
  }

  it("carries large pushes and long questions, in pieces and compressed", async function () {
    this.timeout(60_000);
    const it = await hand(grant());
    const app = await clone(it);
    const big = randomBytes(5 << 20);
    await commit(it, app, "big.bin", big);
    addCommits(app, "main", 60, 1_700_000_000);
    await good(it, app, "push", "-q", "origin", "main");
    assert.equal(upstream.git("acme/app", "cat-file", "-s", "main:big.bin"), String(big.length));
    const again = join(work, "again");
    await good(it, work, "clone", "-q", `${base()}/acme/app`, "again");
    assert.ok(readFileSync(join(again, "big.bin")).equals(big));
    // Many commits that the server has not: what git has to offer is longer than 1,024 bytes, and so compressed.
    await good(it, again, "checkout", "-q", "-b", "far", "HEAD~60");
    // Newer than all others: git offers the newest first.
    addCommits(again, "far", 40, Math.ceil(Date.now() / 1000) + 3600);
    await commit(it, app, "more.txt", "more");
    await good(it, app, "push", "-q", "origin", "main");
    await good(it, again, "fetch", "-q", "origin");
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

  it("refuses every other repository, those of submodules among them; the parent is fetched all the same [A073]", async () => {
    const it = await hand(grant());
    for (const url of [`${base()}/acme/other.git`, `${base()}/acme`, `${base()}/acme/app/more`]) {
      const before = upstream.seen.length;
      const { code, output } = await git(it, work, "clone", url, "x");
      assert.notEqual(code, 0);
      assert.match(output, /REPO_NOT_ALLOWED/);
      assert.equal(upstream.seen.length, before);
    }
    assert.deepEqual(await rows(it), Array(3).fill("decision deny REPO_NOT_ALLOWED"));
    const app = await clone(it);
    writeFileSync(
      join(app, ".gitmodules"),
      `[submodule "o"]\n\tpath = o\n\turl = ${base()}/acme/other.git\n`,
    );
    await good(it, app, "add", ".");
    const head = upstream.git("acme/other", "rev-parse", "main");
    await good(it, app, "update-index", "--add", "--cacheinfo", `160000,${head},o`);
    await good(it, app, "commit", "-q", "-m", "submodule");
    await good(it, app, "push", "-q", "origin", "main");
    const before = upstream.seen.length;
    const { code, output } = await git(
      it,
      work,
      "clone",
      "--recurse-submodules",
      `${base()}/acme/app`,
      "deep",
    );
    assert.notEqual(code, 0);
    assert.match(output, /REPO_NOT_ALLOWED/);
    assert.ok(statSync(join(work, "deep", "README.md")).isFile());
    assert.ok(upstream.seen.slice(before).every(({ url }) => url.startsWith("/acme/app")));
  });

  it("refuses operations and refs that are not granted, in git's own words, before anything is sent", async () => {
    const reader = await hand(grant({ allowPush: false }));
    const app = await clone(reader);
    await commit(reader, app, "a.txt", "a");
    const before = upstream.seen.length;
    const { code, output } = await git(reader, app, "push", "origin", "main");
    assert.notEqual(code, 0);
    assert.match(output, /METHOD_NOT_ALLOWED/);
    assert.equal(upstream.seen.length, before);

    const writer = await hand(grant({ refs: ["refs/heads/agent/*", "refs/heads/draft"] }));
    const refused = [
      ["main"],
      ["main:refs/heads/agentx"],
      ["main:refs/heads/draft/x"],
      ["main:refs/tags/v1"],
      ["main:refs/heads/agent/ok", "main:refs/heads/main"],
      [":refs/heads/main"],
      ["--force", "main:refs/heads/main"],
    ];
    for (const args of refused) {
      const answer = await git(writer, app, "push", "origin", ...args);
      assert.notEqual(answer.code, 0, args.join(" "));
      assert.match(
        answer.output,
        /! \[remote rejected\] .*REF_NOT_ALLOWED: the session may not push to this ref/,
      );
    }
    const posts = upstream.seen.filter(
      ({ method, url }) => method === "POST" && url.endsWith("receive-pack"),
    );
    assert.equal(posts.length, 0);
    await good(writer, app, "push", "-q", "origin", "main:refs/heads/agent/one", "main:refs/heads/draft");
    const refs = upstream.git("acme/app", "for-each-ref", "--format=%(refname)");
    assert.deepEqual(refs.split("\n"), ["refs/heads/agent/one", "refs/heads/draft", "refs/heads/main"]);
    const denied = (await rows(writer)).filter((row) => row.includes("deny"));
    assert.deepEqual(denied, Array(refused.length).fill("decision deny REF_NOT_ALLOWED"));

    const pusher = await hand(grant({ allowFetch: false }));
    assert.match((await git(pusher, work, "clone", `${base()}/acme/app`, "n")).output, /METHOD_NOT_ALLOWED/);
  });

  it("refuses pushes that it cannot read, and push options", async () => {
    const it = await hand(grant());
    const app = await clone(it);
    await commit(it, app, "a.txt", "a");
    const { code, output } = await git(it, app, "push", "-o", "merge_request.create", "origin", "main");
    assert.notEqual(code, 0);
    assert.match(output, /403|METHOD_NOT_ALLOWED/);
    const zero = "0".repeat(40);
    const head = upstream.git("acme/app", "rev-parse", "main");
    const pkt = (text: string) => (text.length + 4).toString(16).padStart(4, "0") + text;
    const bodies = [
      `${pkt(`${zero} ${head} refs/heads/ok\0report-status\n`)}${pkt(`push-cert\0x\n`)}0000`,
      `${pkt(`${zero} ${head} refs/heads/../../x\0report-status\n`)}0000`,
      `${pkt(`${zero} ${head} refs/heads/a\nrefs/heads/b\0report-status\n`)}0000`,
      `${pkt(`${zero} ${head} HEAD\0report-status\n`)}0000`,
      "zzzz",
      pkt(`${zero} ${head} refs/heads/ok\0report-status\n`),
    ];
    const before = upstream.seen.length;
    for (const body of bodies) {
      const status = await post(it, "/acme/app.git/git-receive-pack", body);
      assert.match(status, /^HTTP\/1\.1 (400|403) /, JSON.stringify(body));
    }
    const zipped = await post(
      it,
      "/acme/app.git/git-receive-pack",
      bodies[0] ?? "",
      "content-encoding: gzip\r\n",
    );
    assert.match(zipped, /HEADER_FORBIDDEN/);
    assert.equal(upstream.seen.length, before);
    assert.equal(upstream.git("acme/app", "for-each-ref", "--format=%(refname)"), "refs/heads/main");
  });

  const post = (of: TestHand, path: string, body: string, more = "") =>
    rawFrom(
      of,
      `POST /git/localhost:${upstream.port}${path} HTTP/1.1\r\nhost: 127.0.0.1:3128\r\n` +
        `content-type: application/x-git-receive-pack-request\r\n${more}` +
        `content-length: ${Buffer.byteLength(body)}\r\nconnection: close\r\n\r\n${body}`,
    );

  it("does not follow a redirect [A069]", async () => {
    const it = await hand(grant());
    for (const status of [301, 302, 307, 308]) {
      upstream.listener = (request, response) => {
        response.writeHead(status, { location: `https://localhost:${evil.port}${request.url}` }).end();
      };
      const { code, output } = await git(it, work, "clone", `${base()}/acme/app.git`, "x");
      assert.notEqual(code, 0);
      assert.match(output, /GIT_REDIRECT/);
    }
    assert.equal(evil.connections, 0);
    assert.deepEqual((await rows(it)).slice(0, 3), [
      "decision allow",
      "dispatch",
      "outcome redirect_refused",
    ]);
  });

  it("refuses addresses that have to be decoded to be read, and other services [A071] [A007]", async () => {
    const it = await hand(grant());
    const before = upstream.connections;
    const host = `localhost:${upstream.port}`;
    for (const [path, reason] of [
      [`/git/${host}/a%0ahost=evil/info/refs?service=git-upload-pack`, "URL_NOT_CANONICAL"],
      [`/git/${host}/acme/../acme/app/info/refs?service=git-upload-pack`, "URL_NOT_CANONICAL"],
      [`/git/${host}//acme/app/info/refs?service=git-upload-pack`, "URL_NOT_CANONICAL"],
      [`/git/x@${host}/acme/app/info/refs?service=git-upload-pack`, "URL_NOT_CANONICAL"],
      [`/git/${host}/acme/app/info/refs?service=git-upload-pack?x`, "URL_NOT_CANONICAL"],
      [`/git/${host}/acme/app/info/refs`, "METHOD_NOT_ALLOWED"],
      [`/git/${host}/acme/app/info/refs?service=git-upload-archive`, "METHOD_NOT_ALLOWED"],
      [`/git/${host}/acme/app/git-upload-pack`, "METHOD_NOT_ALLOWED"],
      [`/git/${host}/acme/app/objects/info/packs`, "URL_NOT_CANONICAL"],
    ]) {
      const text = await rawFrom(
        it,
        `GET ${path} HTTP/1.1\r\nhost: 127.0.0.1:3128\r\nconnection: close\r\n\r\n`,
      );
      assert.match(text, new RegExp(`ganglion-reason: ${reason}`, "i"), path);
    }
    assert.equal(upstream.connections, before);
    assert.equal((await rows(it)).length, 9);
  });

  it("refuses a credential of the caller's own [A025]", async () => {
    const it = await hand(grant());
    const url = `http://x:mine@127.0.0.1:${it.port}/git/localhost:${upstream.port}/acme/app`;
    const header = [
      "-c",
      `http.extraHeader=Authorization: Basic ${Buffer.from("x:mine").toString("base64")}`,
    ];
    const { code, output } = await git(it, work, ...header, "clone", url, "x");
    assert.notEqual(code, 0);
    assert.match(output, /HEADER_FORBIDDEN/);
    assert.equal(upstream.seen.length, 0);
  });

  it("says so when the server refuses the token, asks nobody for a password, and shows no secret [B114]", async () => {
    const it = await hand(grant());
    upstream.token = "another";
    const { code, output } = await git(it, work, "clone", `${base()}/acme/app`, "x");
    assert.notEqual(code, 0);
    assert.match(output, /UPSTREAM_UNAUTHORIZED/);
    assert.ok(!output.includes("www-authenticate") && !/could not read Username/.test(output));
    assertClean(work, [token, it.token], output);
    assert.equal((await rows(it)).at(-1), "outcome upstream_unauthorized");
    upstream.token = token;
    upstream.listener = (_request, response) => void response.writeHead(404).end(token);
    assert.match(
      (await git(it, work, "clone", `${base()}/acme/app`, "x")).output,
      /REPO_NOT_FOUND|not found/,
    );
  });

  it("uses the host's credential where the repository has none, and none where there is none", async () => {
    const repositories = [grant()];
    const byHost = await hands.hand({ repositories, bearers: [{ url: base(), secret: token }] });
    await clone(byHost);
    upstream.token = undefined;
    upstream.seen.length = 0;
    const open = await hands.hand({ repositories });
    await good(open, work, "clone", "-q", `${base()}/acme/app`, "open");
    assert.ok(
      upstream.seen.length > 0 && upstream.seen.every(({ authorization }) => authorization === undefined),
    );
  });

  it("shows the remote's text without what a terminal would act upon, and without the token [A077] [B114]", async () => {
    const it = await hand(grant());
    const app = await clone(it);
    await commit(it, app, "a.txt", "a");
    const bidi = "\u202eevil\u2066";
    upstream.hook(
      "acme/app",
      `printf '\\033[31mred\\033]0;title\\007 \\302\\233 ${bidi} key ${token} end\\n' >&2; exit 1`,
    );
    const { code, output } = await git(it, app, "-c", "color.ui=never", "push", "origin", "main");
    assert.notEqual(code, 0);
    assert.match(output, /\?\[31mred\?\]0;title\? \?\? \?\?\?evil\?\?\? key \[REDACTED:vcrd_\w+\] end/);
    // biome-ignore lint/suspicious/noControlCharactersInRegex: these must not be there
    assert.ok(!/[\u001b\u0007\u0080-\u009f\u202a-\u202e\u2066-\u2069]/.test(output));
    const outcome = (await kit.records(it.sessionId)).filter(({ kind }) => kind === 3).at(-1);
    assert.equal(outcome?.redactions, 1n);
    assertClean(work, [token], output);
  });

  it("refuses an answer that is not git's, whatever it says of itself", async () => {
    const it = await hand(grant());
    const type = "application/x-git-upload-pack-advertisement";
    for (const [contentType, body] of [
      ["text/html", `<h1>${token}</h1>`],
      [type, `<h1>${token}</h1>`],
      [type, "0010# service=x"],
    ]) {
      upstream.listener = (_request, response) => {
        response.writeHead(200, { "content-type": contentType }).end(body);
      };
      const { code, output } = await git(it, work, "clone", `${base()}/acme/app`, "x");
      assert.notEqual(code, 0);
      assert.ok(!output.includes(token));
      assert.equal((await rows(it)).at(-1), "outcome upstream_malformed");
    }
  });

  it("cuts a transfer within 5 s of the session's end, and refuses the next [L7]", async function () {
    this.timeout(20_000);
    const it = await hand(grant());
    const began = new Promise<void>((resolve) => {
      upstream.listener = (_request, response) => {
        response.writeHead(200, { "content-type": "application/x-git-upload-pack-advertisement" });
        response.write("001e# service=git-upload-pack\n0000");
        resolve();
      };
    });
    const cloning = git(it, work, "clone", `${base()}/acme/app`, "x");
    await began;
    const endedAt = performance.now();
    await kit.raiseFence(it.sessionId, 1n, true);
    assert.notEqual((await cloning).code, 0);
    assert.ok(performance.now() - endedAt < 5000);
    upstream.listener = undefined;
    assert.match((await git(it, work, "clone", `${base()}/acme/app`, "x")).output, /SESSION_ENDED/);
    const list = await rows(it);
    assert.ok(list.includes("outcome session_ended"));
    assert.equal(list.at(-1), "decision deny SESSION_ENDED");
  });

  it("leaves nothing behind of a clone that is interrupted [A075]", async () => {
    const it = await hand(grant());
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
    while ((await rows(it)).length < 3) await new Promise((resolve) => setImmediate(resolve));
    assert.equal((await rows(it)).at(-1), "outcome cancelled");
    assertClean(work, [token, it.token], "");
  });

  /** No form of a secret in any file below a folder, or in a text. */
  const assertClean = (folder: string, secrets: string[], text: string) => {
    const files = readdirSync(folder, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => readFileSync(join(entry.parentPath, entry.name)));
    for (const bytes of [Buffer.from(text), ...files]) {
      for (const secret of secrets) {
        assert.ok(!bytes.includes(secret));
        assert.ok(!bytes.includes(Buffer.from(`x-access-token:${secret}`).toString("base64")));
      }
    }
  };
});
