import assert from "node:assert/strict";
import { statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { GitStage } from "./git-stage.ts";
import type { GitUpstream } from "./git-upstream.ts";
import { rawFrom, type TestHand } from "./hand-kit.ts";
import type { Recorder } from "./recorder.ts";

describe("what the git door refuses", () => {
  let stage: GitStage;
  let upstream: GitUpstream;
  let evil: Recorder;

  before(async function () {
    this.timeout(90_000);
    stage = await GitStage.start();
    ({ upstream, evil } = stage);
  });
  after(() => stage?.stop());
  beforeEach(() => stage.begin());
  afterEach(() => stage.clear());

  it("refuses every other repository, those of submodules among them; the parent is fetched all the same [A073]", async () => {
    const it = await stage.hand(stage.grant());
    for (const url of [`${stage.base}/acme/other.git`, `${stage.base}/acme`, `${stage.base}/acme/app/more`]) {
      const before = upstream.seen.length;
      const { code, output } = await stage.git(it, stage.work, "clone", url, "x");
      assert.notEqual(code, 0);
      assert.match(output, /REPO_NOT_ALLOWED/);
      assert.equal(upstream.seen.length, before);
    }
    assert.deepEqual(await stage.rows(it), Array(3).fill("decision deny REPO_NOT_ALLOWED"));
    const app = await stage.clone(it);
    writeFileSync(
      join(app, ".gitmodules"),
      `[submodule "o"]\n\tpath = o\n\turl = ${stage.base}/acme/other.git\n`,
    );
    await stage.good(it, app, "add", ".");
    const head = upstream.git("acme/other", "rev-parse", "main");
    await stage.good(it, app, "update-index", "--add", "--cacheinfo", `160000,${head},o`);
    await stage.good(it, app, "commit", "-q", "-m", "submodule");
    await stage.good(it, app, "push", "-q", "origin", "main");
    const before = upstream.seen.length;
    const { code, output } = await stage.git(
      it,
      stage.work,
      "clone",
      "--recurse-submodules",
      `${stage.base}/acme/app`,
      "deep",
    );
    assert.notEqual(code, 0);
    assert.match(output, /REPO_NOT_ALLOWED/);
    assert.ok(statSync(join(stage.work, "deep", "README.md")).isFile());
    assert.ok(upstream.seen.slice(before).every(({ url }) => url.startsWith("/acme/app")));
  });

  it("refuses operations and refs that are not granted, in git's own words, before anything is sent", async () => {
    const reader = await stage.hand(stage.grant({ allowPush: false }));
    const app = await stage.clone(reader);
    await stage.commit(reader, app, "a.txt", "a");
    const before = upstream.seen.length;
    const { code, output } = await stage.git(reader, app, "push", "origin", "main");
    assert.notEqual(code, 0);
    assert.match(output, /METHOD_NOT_ALLOWED/);
    assert.equal(upstream.seen.length, before);

    const writer = await stage.hand(stage.grant({ refs: ["refs/heads/agent/*", "refs/heads/draft"] }));
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
      const answer = await stage.git(writer, app, "push", "origin", ...args);
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
    await stage.good(
      writer,
      app,
      "push",
      "-q",
      "origin",
      "main:refs/heads/agent/one",
      "main:refs/heads/draft",
    );
    const refs = upstream.git("acme/app", "for-each-ref", "--format=%(refname)");
    assert.deepEqual(refs.split("\n"), ["refs/heads/agent/one", "refs/heads/draft", "refs/heads/main"]);
    const denied = (await stage.rows(writer)).filter((row) => row.includes("deny"));
    assert.deepEqual(denied, Array(refused.length).fill("decision deny REF_NOT_ALLOWED"));

    const pusher = await stage.hand(stage.grant({ allowFetch: false }));
    assert.match(
      (await stage.git(pusher, stage.work, "clone", `${stage.base}/acme/app`, "n")).output,
      /METHOD_NOT_ALLOWED/,
    );
  });

  it("refuses pushes that it cannot read, and push options", async () => {
    const it = await stage.hand(stage.grant());
    const app = await stage.clone(it);
    await stage.commit(it, app, "a.txt", "a");
    const { code, output } = await stage.git(it, app, "push", "-o", "merge_request.create", "origin", "main");
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
    const it = await stage.hand(stage.grant());
    for (const status of [301, 302, 307, 308]) {
      upstream.listener = (request, response) => {
        response.writeHead(status, { location: `https://localhost:${evil.port}${request.url}` }).end();
      };
      const { code, output } = await stage.git(it, stage.work, "clone", `${stage.base}/acme/app.git`, "x");
      assert.notEqual(code, 0);
      assert.match(output, /GIT_REDIRECT/);
    }
    assert.equal(evil.connections, 0);
    assert.deepEqual((await stage.rows(it)).slice(0, 3), [
      "decision allow",
      "dispatch",
      "outcome redirect_refused",
    ]);
  });

  it("refuses addresses that have to be decoded to be read, and other services [A071] [A007]", async () => {
    const it = await stage.hand(stage.grant());
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
    assert.equal((await stage.rows(it)).length, 9);
  });

  it("refuses a credential of the caller's own [A025]", async () => {
    const it = await stage.hand(stage.grant());
    const url = `http://x:mine@127.0.0.1:${it.port}/git/localhost:${upstream.port}/acme/app`;
    const header = [
      "-c",
      `http.extraHeader=Authorization: Basic ${Buffer.from("x:mine").toString("base64")}`,
    ];
    const { code, output } = await stage.git(it, stage.work, ...header, "clone", url, "x");
    assert.notEqual(code, 0);
    assert.match(output, /HEADER_FORBIDDEN/);
    assert.equal(upstream.seen.length, 0);
  });
});
