import assert from "node:assert/strict";
import { sortedJson } from "../../../services/common/json/sorted-json.ts";
import { sealPurposes } from "../../../services/common/seal/seal-purposes.ts";
import { mergePatch } from "../../../services/dev-vault/kv/merge-patch.ts";
import {
  type CredentialChange,
  changedConfig,
} from "../../../services/mcp-proxy/domain/change-credential.ts";
import type { CredentialConfig } from "../../../services/mcp-proxy/domain/credential-config.ts";
import { isAllowedHost, isSecretName } from "../../../services/mcp-proxy/domain/credential-rules.ts";
import type { CredentialRecord } from "../../../services/mcp-proxy/domain/records.ts";
import { createRowMac } from "../../../services/mcp-proxy/domain/row-mac.ts";

describe("the rules of credentials", () => {
  it("take host names, IPv4 addresses and the ends of names", () => {
    const fit = [
      "a",
      "api.example.com",
      "*.example.com",
      "*.internal",
      "192.0.2.1",
      "xn--bcher-kva.example",
      "a_b.test",
    ];
    for (const host of fit) assert.ok(isAllowedHost(host), host);
    const unfit = [
      ...["", "*", "*.", "a.*", "*a.test", "*.*.test", ".a", "a.", "a..b", "-a.test", "a-.test", "A.test"],
      ...["https://a.test", "a.test:443", "a.test/x", "a.test?x", "u@a.test", "a b", "a\n", "bücher.example"],
      ...["::1", "[::1]", "1.2.3", "1.2.3.4.5", "256.1.1.1", "01.2.3.4", "127.1", "2130706433", "0x7f000001"],
      ...[
        "0x7f.0.0.1",
        "a.0x1",
        "*.1.2.3.4",
        "*.192.0.2.1",
        `${"a".repeat(64)}.test`,
        `${"a.".repeat(127)}toolong`,
      ],
    ];
    for (const host of unfit) assert.ok(!isAllowedHost(host), host);
  });

  it("take names of variables that change nothing else", () => {
    for (const name of ["A", "_x", "GITHUB_TOKEN", "GIT_TOKEN", "AWS_SECRET_ACCESS_KEY", "a1"]) {
      assert.ok(isSecretName(name), name);
    }
    const unfit = ["", "1A", "A-B", "A B", "A=B", "Ä", "A\u0000", "a".repeat(256)];
    const obeyed = [
      "PATH",
      "path",
      "HOME",
      "LD_PRELOAD",
      "DYLD_INSERT_LIBRARIES",
      "BASH_ENV",
      "NODE_OPTIONS",
    ];
    const routes = [
      "HTTPS_PROXY",
      "http_proxy",
      "NO_PROXY",
      "SSL_CERT_FILE",
      "GIT_SSH_COMMAND",
      "GANGLION_X",
    ];
    for (const name of [...unfit, ...obeyed, ...routes]) assert.ok(!isSecretName(name), name);
  });

  const oauth: CredentialConfig = {
    expires_at: "2030-01-01T00:00:00.000Z",
    refresh: { client_id: "c", token_endpoint: "https://t.test", token_endpoint_auth: "none", scope: "a b" },
  };
  const variable: CredentialConfig = {
    networking: { type: "limited", allowed_hosts: ["a.test"] },
    injection_location: { header: true, body: true },
  };
  const changed = (config: CredentialConfig, auth: CredentialChange["auth"]) =>
    changedConfig({ config } as CredentialRecord, { auth } as CredentialChange);

  it("keep what a change does not name", () => {
    assert.deepEqual(changed(oauth, undefined), oauth);
    assert.deepEqual(changed(oauth, { kind: "mcp_oauth" }), oauth);
    assert.deepEqual(changed(variable, { kind: "environment_variable" }), variable);
    const { scope: _scope, ...refresh } = oauth.refresh ?? assert.fail();
    assert.deepEqual(changed(oauth, { kind: "mcp_oauth", scope: "" }), { ...oauth, refresh });
    const later = "2031-01-01T00:00:00.000Z";
    assert.deepEqual(changed(oauth, { kind: "mcp_oauth", expiresAt: later }), {
      ...oauth,
      expires_at: later,
    });
    const off = changed(variable, { kind: "environment_variable", injection: { body: false } });
    assert.deepEqual(off, { ...variable, injection_location: { header: true, body: false } });
    const any = changed(variable, { kind: "environment_variable", networking: { type: "unrestricted" } });
    assert.deepEqual(any, { ...variable, networking: { type: "unrestricted" } });
  });

  it("are covered by a row's MAC, whatever the order of keys, and rows from before there were settings keep theirs", () => {
    const mac = createRowMac(Buffer.alloc(32, 7));
    const row = {
      credentialId: "vcrd_1",
      vaultId: "vlt_1",
      kind: "environment_variable",
      url: "",
      secretName: "A",
    };
    const turned = { injection_location: { body: true, header: true }, networking: variable.networking };
    const good = mac.credential({ ...row, config: variable });
    assert.deepEqual(mac.credential({ ...row, config: turned as CredentialConfig }), good);
    const others: Partial<typeof row & { config: CredentialConfig }>[] = [
      { config: {} },
      { config: { ...variable, networking: { type: "unrestricted" } } },
      { config: { ...variable, networking: { type: "limited", allowed_hosts: ["a.test", "evil.test"] } } },
      { config: { ...variable, injection_location: { header: true, body: false } } },
      { secretName: "B" },
      { kind: "static_bearer" },
      { vaultId: "vlt_2" },
    ];
    for (const other of others) {
      assert.notDeepEqual(
        mac.credential({ ...row, config: variable, ...other }),
        good,
        JSON.stringify(other),
      );
    }
    const bearer = { ...row, kind: "static_bearer", url: "https://a.test", secretName: "", config: {} };
    assert.notDeepEqual(mac.credential({ ...bearer, config: oauth }), mac.credential(bearer));
    // As it was made before there were settings.
    assert.equal(
      mac.credential(bearer).toString("hex"),
      "1ca59d5353d11f28f20d00bcfb83366c99350043edbd8c92c031148454cffb2e",
    );
  });

  it("seal refresh tokens and client secrets for the token endpoint, all else for the key", () => {
    const refresh = {
      clientId: "c",
      tokenEndpoint: "https://t.test",
      tokenEndpointAuth: 2 as const,
      scope: "",
      resource: "",
    };
    const value = { mcpServerUrl: "https://a.test", expiresAt: undefined, refresh };
    assert.deepEqual(sealPurposes("vlt_1", { $case: "mcpOauth", value }), {
      secret: { vaultId: "vlt_1", purpose: "mcp_oauth", destination: "https://a.test" },
      refreshToken: { vaultId: "vlt_1", purpose: "mcp_oauth.refresh_token", destination: "https://t.test" },
      clientSecret: { vaultId: "vlt_1", purpose: "mcp_oauth.client_secret", destination: "https://t.test" },
    });
  });

  it("write the same text for the same value", () => {
    assert.equal(sortedJson({ b: [{ d: 1, c: null }], a: "x" }), '{"a":"x","b":[{"c":null,"d":1}]}');
  });

  it("merge a patch as RFC 7396 says", () => {
    const cases: [unknown, unknown, unknown][] = [
      [{ a: "b" }, { a: "c" }, { a: "c" }],
      [{ a: "b", b: "c" }, { a: null }, { b: "c" }],
      [{ a: ["b"] }, { a: "c" }, { a: "c" }],
      [{ a: { b: "c" } }, { a: { b: "d", c: null } }, { a: { b: "d" } }],
      [{ a: [{ b: "c" }] }, { a: [1] }, { a: [1] }],
      [["a"], { a: "b" }, { a: "b" }],
      [{ e: null }, { a: 1 }, { e: null, a: 1 }],
      [{}, { a: { bb: { ccc: null } } }, { a: { bb: {} } }],
    ];
    for (const [target, patch, merged] of cases) assert.deepEqual(mergePatch(target, patch), merged);
    const own = mergePatch({}, JSON.parse('{"__proto__":{"polluted":1}}')) as object;
    assert.equal((own as { polluted?: unknown }).polluted, undefined);
  });
});
