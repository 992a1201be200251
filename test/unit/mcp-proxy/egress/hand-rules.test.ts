import assert from "node:assert/strict";
import { X509Certificate } from "node:crypto";
import {
  isHostListed,
  isRefGranted,
  judgeNetworking,
  type Networking,
  repositoryUrl,
} from "../../../../services/mcp-proxy/domain/hand-rules.ts";
import { isMintedToken } from "../../../../services/mcp-proxy/domain/minted-token.ts";
import { createRedactors } from "../../../../services/mcp-proxy/domain/redact-all.ts";
import { createSessionAuthorities } from "../../../../services/mcp-proxy/egress/session-authority.ts";

const limited = (more: Partial<Networking> = {}): Networking => ({
  type: "limited",
  allowedHosts: [],
  allowMcpServers: false,
  allowPackageManagers: false,
  ...more,
});

describe("what a hand may reach", () => {
  const judge = (host: string, networking: Networking | null) =>
    judgeNetworking({ host }, { networking, mcpServers: [{ url: "https://mcp.test/x" }] });

  it("is nothing where nothing is said, or something unknown [A013]", () => {
    assert.equal(judge("a.test", null), "DEST_NOT_ALLOWED");
    assert.equal(judge("a.test", limited()), "DEST_NOT_ALLOWED");
    assert.equal(judge("a.test", { ...limited(), type: "any" as "limited" }), "DEST_NOT_ALLOWED");
    assert.equal(judge("a.test", limited({ type: "unrestricted" })), undefined);
  });

  it("is a list of hosts, anchored at both ends [A005]", () => {
    const entries = ["a.test", "*.b.test", "192.0.2.1"];
    for (const host of ["a.test", "x.b.test", "y.x.b.test", "192.0.2.1"])
      assert.ok(isHostListed(host, entries));
    for (const host of ["xa.test", "a.test.evil.test", "b.test", "xb.test", ".b.test", "192.0.2.10", ""]) {
      assert.ok(!isHostListed(host, entries), host);
    }
    assert.ok(!isHostListed("x", ["*."]));
  });

  it("is what the two switches add", () => {
    assert.equal(judge("mcp.test", limited()), "DEST_NOT_ALLOWED");
    assert.equal(judge("mcp.test", limited({ allowMcpServers: true })), undefined);
    assert.equal(judge("pypi.org", limited({ allowMcpServers: true })), "DEST_NOT_ALLOWED");
    assert.equal(judge("pypi.org", limited({ allowPackageManagers: true })), undefined);
    assert.equal(judge("evil.pypi.org", limited({ allowPackageManagers: true })), "DEST_NOT_ALLOWED");
  });
});

describe("a granted repository", () => {
  it("has one name", () => {
    for (const url of ["https://git.test/a/b", "https://GIT.test:443/a/b.git", "https://git.test/a/b/"]) {
      assert.equal(repositoryUrl(url), "https://git.test/a/b");
    }
    assert.notEqual(repositoryUrl("https://git.test/A/b"), repositoryUrl("https://git.test/a/b"));
    for (const url of [
      "https://git.test/",
      "https://u@git.test/a/b",
      "https://git.test/a/b?x",
      "https://git.test/a%2fb",
      "git://git.test/a/b",
      "ssh://git.test/a/b",
    ]) {
      assert.equal(repositoryUrl(url), undefined, url);
    }
  });

  it("has refs, exact or below a name", () => {
    const grant = { allowPush: true, refs: ["refs/heads/agent/*", "refs/heads/main"] };
    for (const ref of ["refs/heads/agent/x", "refs/heads/agent/x/y", "refs/heads/main"]) {
      assert.ok(isRefGranted(ref, grant), ref);
      assert.ok(!isRefGranted(ref, { ...grant, allowPush: false }));
    }
    for (const ref of [
      "refs/heads/agent",
      "refs/heads/agent/",
      "refs/heads/agentx",
      "refs/heads/main2",
      "refs/tags/v",
    ]) {
      assert.ok(!isRefGranted(ref, grant), ref);
    }
    assert.ok(!isRefGranted("refs/heads/main", { allowPush: true, refs: [] }));
  });
});

describe("the authority of a session", () => {
  it("has the same key at every replica, and another in every session", async () => {
    const key = Buffer.alloc(32, 9);
    const spkiOf = async (secret: Buffer, session: string) =>
      new X509Certificate(await createSessionAuthorities(secret).pem(session)).publicKey.export({
        format: "der",
        type: "spki",
      });
    const first = await spkiOf(key, "sesn_1");
    assert.deepEqual(await spkiOf(key, "sesn_1"), first);
    assert.notDeepEqual(await spkiOf(key, "sesn_2"), first);
    assert.notDeepEqual(await spkiOf(Buffer.alloc(32, 8), "sesn_1"), first);
    const certificate = new X509Certificate(await createSessionAuthorities(key).pem("sesn_1"));
    assert.ok(certificate.ca && certificate.verify(certificate.publicKey));
  });
});

describe("an answer", () => {
  it("that is a new credential is known by its fields [A066]", () => {
    const is = (value: unknown) => isMintedToken(Buffer.from(JSON.stringify(value)));
    for (const value of [
      { access_token: "x" },
      { refresh_token: "x" },
      { id_token: "x" },
      { token: "x", expires_at: 1 },
    ]) {
      assert.ok(is(value));
    }
    for (const value of [
      { token: "x" },
      { access_token: 1 },
      [{ access_token: "x" }],
      "access_token",
      null,
      3,
    ]) {
      assert.ok(!is(value));
    }
    assert.ok(!isMintedToken(Buffer.from("{")));
    const named = (value: unknown) => isMintedToken(Buffer.from(JSON.stringify(value)), ["token"]);
    for (const value of [{ token: "x" }, [{ a: { token: "x" } }]]) assert.ok(named(value) && !is(value));
    for (const value of [{ token: 1 }, { tokens: "x" }, { a: "token" }]) assert.ok(!named(value));
  });

  it("loses each of several secrets, the longer one first [A064]", () => {
    const secrets = [
      { value: "sk-live-12345", label: "long" },
      { value: "sk-live-", label: "short" },
    ];
    const text = "a sk-live-12345 sk-live-9 sk-live-1234";
    for (let cut = 0; cut <= text.length; cut += 1) {
      const redactor = createRedactors(secrets);
      const parts = [text.slice(0, cut), text.slice(cut)].map((part) => redactor.push(Buffer.from(part)));
      const out = Buffer.concat([...parts, redactor.flush()]).toString();
      assert.equal(out, "a [REDACTED:long] [REDACTED:short]9 [REDACTED:short]1234", String(cut));
      assert.equal(redactor.count, 3);
    }
  });
});
