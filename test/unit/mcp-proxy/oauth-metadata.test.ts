import assert from "node:assert/strict";
import type { Reply } from "../../../services/mcp-proxy/domain/oauth/oauth-ports.ts";
import {
  challengeParameter,
  isPlainUrl,
  isResourceOf,
  isSameIssuer,
  readResourceMetadata,
  readServerMetadata,
  resourceMetadataUrls,
  serverMetadataUrls,
} from "../../../services/mcp-proxy/domain/oauth/server-metadata.ts";
import { isLoopbackRedirect } from "../../../services/mcp-proxy/domain/oauth/start-authorization.ts";

const reply = (body: unknown, status = 200): Reply => {
  const text = typeof body === "string" ? body : JSON.stringify(body);
  return { ok: true, status, contentType: "application/json", challenge: "", body: text, bytes: text.length };
};

describe("metadata of OAuth servers", () => {
  it("is looked for where the standards say", () => {
    assert.deepEqual(resourceMetadataUrls("https://h.test/a/mcp?x=1"), [
      "https://h.test/.well-known/oauth-protected-resource/a/mcp?x=1",
      "https://h.test/.well-known/oauth-protected-resource",
    ]);
    assert.deepEqual(resourceMetadataUrls("https://h.test"), [
      "https://h.test/.well-known/oauth-protected-resource",
    ]);
    assert.deepEqual(serverMetadataUrls("https://h.test/"), [
      "https://h.test/.well-known/oauth-authorization-server",
      "https://h.test/.well-known/openid-configuration",
    ]);
    assert.deepEqual(serverMetadataUrls("https://h.test/t1"), [
      "https://h.test/.well-known/oauth-authorization-server/t1",
      "https://h.test/.well-known/openid-configuration/t1",
      "https://h.test/t1/.well-known/openid-configuration",
    ]);
  });

  it("is found by a challenge, whichever way it is written", () => {
    const url = "https://h.test/.well-known/x";
    for (const challenge of [
      `Bearer resource_metadata="${url}"`,
      `Bearer error="invalid_token", resource_metadata="${url}", scope="a b"`,
      `Bearer realm="x",RESOURCE_METADATA="${url}"`,
    ]) {
      assert.equal(challengeParameter(challenge, "resource_metadata"), url);
    }
    assert.equal(challengeParameter('Bearer scope="a b"', "scope"), "a b");
    for (const challenge of [
      "",
      "Bearer",
      `Bearer xresource_metadata="${url}"`,
      'Bearer resource_metadata=""',
    ]) {
      assert.equal(challengeParameter(challenge, "resource_metadata"), undefined);
    }
  });

  it("of a resource speaks of the server, or of one above it on the same origin", () => {
    for (const resource of [
      "https://h.test",
      "https://h.test/",
      "https://h.test/a",
      "https://h.test/a/mcp",
      "https://h.test/a/mcp/",
    ]) {
      assert.ok(isResourceOf(resource, "https://h.test/a/mcp"), resource);
    }
    for (const resource of [
      "https://h.test/b",
      "https://h.test/a/m",
      "https://h.test:8443/a",
      "http://h.test/a",
      "https://x.h.test",
      "https://h.test/a?b=c",
    ]) {
      assert.ok(!isResourceOf(resource, "https://h.test/a/mcp"), resource);
    }
  });

  it("names its own issuer [A048]", () => {
    assert.ok(isSameIssuer("https://h.test", "https://h.test/"));
    for (const other of ["https://h.test.evil", "https://h.test/a", "http://h.test", "https://H.test.", ""]) {
      assert.ok(!isSameIssuer(other, "https://h.test"), other);
    }
  });

  it("is read only where it is an answer", () => {
    const metadata = { resource: "https://h.test/mcp", authorization_servers: ["https://a.test"] };
    assert.equal(readResourceMetadata(reply(metadata))?.issuer, "https://a.test");
    for (const broken of [
      reply(metadata, 404),
      reply("<html>"),
      reply([metadata]),
      reply({ ...metadata, authorization_servers: "https://a.test" }),
      reply({ ...metadata, authorization_servers: ["file:///etc/passwd"] }),
      reply({ ...metadata, resource: 7 }),
      { ok: false, failure: "timeout", status: 0 } as Reply,
    ]) {
      assert.equal(readResourceMetadata(broken), undefined);
    }
    const server = {
      issuer: "https://a.test",
      authorization_endpoint: "https://a.test/a",
      token_endpoint: "https://a.test/t",
    };
    assert.deepEqual(readServerMetadata(reply(server))?.authMethods, ["client_secret_basic"]);
    assert.equal(readServerMetadata(reply(server))?.hasPkce, false);
    assert.equal(readServerMetadata(reply({ ...server, issuer: undefined })), undefined);
    const methods = { token_endpoint_auth_methods_supported: ["private_key_jwt"] };
    assert.deepEqual(readServerMetadata(reply({ ...server, ...methods }))?.authMethods, []);
    assert.throws(() => readServerMetadata(reply({ ...server, token_endpoint: undefined })), {
      reason: "OAUTH_NOT_SUPPORTED",
    });
  });

  it("gives no address to a person that a shell would act upon [A050]", () => {
    assert.ok(isPlainUrl("https://a.test/authorize?tenant=x&p=a%20b"));
    for (const bad of [
      "http://x$(touch /tmp/p)",
      "https://x/`id`",
      "https://x/a;b",
      "https://x/a|b",
      "https://x/'a'",
      "https://x/a b",
      "https://x/\n",
      "file:///x",
      "javascript:1",
      "https://u:p@x/",
    ]) {
      assert.ok(!isPlainUrl(bad), bad);
    }
  });

  it("brings codes to this machine only", () => {
    for (const good of ["http://127.0.0.1:8/cb", "http://[::1]:8/cb", "http://localhost:8/cb"])
      assert.ok(isLoopbackRedirect(good));
    for (const bad of [
      "https://127.0.0.1/cb",
      "http://127.0.0.2/cb",
      "http://127.0.0.1.test/cb",
      "http://a@127.0.0.1/cb",
      "http://127.0.0.1/cb?a=b",
      "http://127.0.0.1/cb#a",
    ]) {
      assert.ok(!isLoopbackRedirect(bad), bad);
    }
  });
});
