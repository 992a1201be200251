import assert from "node:assert/strict";
import type Anthropic from "@anthropic-ai/sdk";
import { RestVaults, refusal } from "./rest-vaults-kit.ts";

describe("credentials over REST that are not fit to be stored", () => {
  let rest: RestVaults;
  let vaults: Anthropic["beta"]["vaults"];

  before(async function () {
    this.timeout(120_000);
    rest = await RestVaults.start();
    ({ vaults } = rest);
  });

  after(() => rest?.stop());

  const secret = () => rest.secret();
  const bearer = (url?: string) => rest.bearer(url);
  const oauth = () => rest.oauth();
  const variable = () => rest.variable();

  const limited = (...hosts: string[]) => ({ networking: { type: "limited", allowed_hosts: hosts } });
  const bad: [string, () => object, RegExp][] = [
    ["no auth", () => ({}), /auth/],
    ["an unknown type", () => ({ auth: { type: "basic" } }), /auth\.type/],
    ["an unknown field", () => ({ auth: { ...bearer(), colour: "red" } }), /auth\.colour/],
    ["no token", () => ({ auth: { ...bearer(), token: undefined } }), /auth\.token/],
    ["a token that is no text", () => ({ auth: { ...bearer(), token: 12345678 } }), /auth\.token/],
    ["a token with a line feed", () => ({ auth: { ...bearer(), token: `${secret()}\n` } }), /auth\.token/],
    ["a URL with a user name", () => ({ auth: bearer("https://u:p@mcp.test/") }), /mcp_server_url/],
    ["an expiry in the past", () => ({ auth: { ...oauth(), expires_at: "2020-01-01T00:00:00Z" } }), /future/],
    ["an expiry that is no time", () => ({ auth: { ...oauth(), expires_at: "soon" } }), /RFC 3339/],
    [
      "a public client with a secret",
      () => {
        const auth = oauth();
        const how = { type: "none", client_secret: secret() };
        return { auth: { ...auth, refresh: { ...auth.refresh, token_endpoint_auth: how } } };
      },
      /client_secret/,
    ],
    [
      "no refresh token",
      () => ({ auth: { ...oauth(), refresh: { ...oauth().refresh, refresh_token: null } } }),
      /refresh_token/,
    ],
    ["no networking", () => ({ auth: { ...variable(), networking: undefined } }), /networking/],
    ["networking null", () => ({ auth: { ...variable(), networking: null } }), /networking/],
    [
      "17 hosts",
      () => ({ auth: { ...variable(), ...limited(...Array.from({ length: 17 }, (_, i) => `h${i}.test`)) } }),
      /allowed_hosts/,
    ],
    ["both places off", () => ({ auth: { ...variable(), injection_location: {} } }), /injection_location/],
    ["places null", () => ({ auth: { ...variable(), injection_location: null } }), /injection_location/],
    [
      "the name of a variable that programs obey",
      () => ({ auth: { ...variable(), secret_name: "LD_PRELOAD" } }),
      /secret_name/,
    ],
    ["a name with a sign in it", () => ({ auth: { ...variable(), secret_name: "A-B" } }), /secret_name/],
    ...[
      "https://a.test",
      "a.test:443",
      "a.test/x",
      "[::1]",
      "::1",
      "*",
      "a.*.test",
      "127.1",
      "0x7f.1",
      "a b.test",
      "",
    ].map((host): [string, () => object, RegExp] => [
      `the host ${JSON.stringify(host)}`,
      () => ({ auth: { ...variable(), ...limited(host) } }),
      /allowed_hosts/,
    ]),
  ];
  for (const [what, body, message] of bad) {
    it(`refuses ${what} with 400`, async () => {
      const vaultId = await rest.makeVault();
      const error = await refusal(vaults.credentials.create(vaultId, body() as never));
      assert.equal(error.status, 400);
      assert.equal(error.type, "invalid_request_error");
      assert.match(error.message, message);
      assert.deepEqual((await vaults.credentials.list(vaultId)).data, []);
    });
  }

  it("repeats, logs and stores none of their secrets [A117]", () => rest.assertKeptSecret(40));
});
