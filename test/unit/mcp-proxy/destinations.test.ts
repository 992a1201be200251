import assert from "node:assert/strict";
import { type Destination, parseDestination } from "../../../services/mcp-proxy/domain/canonical-url.ts";
import type { DestinationPolicy } from "../../../services/mcp-proxy/domain/destination-policy.ts";
import { classifyAddress } from "../../../services/mcp-proxy/upstream/address-class.ts";
import { createControlPlane } from "../../../services/mcp-proxy/upstream/control-plane.ts";
import { createResolver } from "../../../services/mcp-proxy/upstream/resolver.ts";

const parse = (text: string): Destination => {
  const found = parseDestination(text);
  assert.ok(found, text);
  return found;
};

describe("destinations", () => {
  it("have one normal form", () => {
    assert.equal(parse("HTTPS://API.Good.Test:443/MCP/").url, "https://api.good.test/MCP");
    assert.equal(parse("https://good.test").url, "https://good.test");
    assert.equal(parse("https://good.test/").url, "https://good.test");
    assert.equal(parse("http://good.test:8080/a?b=c").url, "http://good.test:8080/a?b=c");
    assert.equal(parse("https://good.test./x").host, "good.test");
  });

  for (const text of [
    "",
    "ftp://good.test/",
    "//good.test/",
    "https://user@good.test/",
    "https://user:pw@good.test/",
    "https://good.test/#fragment",
    "https://good.test\\@evil.test/",
    "https://good.test/a b",
    "https://good.test/\n",
    "https://",
    "file:///etc/passwd",
    `https://good.test/${"a".repeat(3000)}`,
  ]) {
    it(`refuses ${JSON.stringify(text.slice(0, 40))} [A007]`, () =>
      assert.equal(parseDestination(text), undefined));
  }

  for (const [address, kind] of [
    ["8.8.8.8", "public"],
    ["127.0.0.1", "loopback"],
    ["127.255.255.254", "loopback"],
    ["10.0.0.1", "private"],
    ["172.31.0.1", "private"],
    ["192.168.1.1", "private"],
    ["100.64.0.1", "private"],
    ["169.254.169.254", "link-local"],
    ["0.0.0.0", "forbidden"],
    ["224.0.0.1", "forbidden"],
    ["255.255.255.255", "forbidden"],
    ["::1", "loopback"],
    ["::", "forbidden"],
    ["::ffff:127.0.0.1", "loopback"],
    ["::ffff:a9fe:a9fe", "link-local"],
    ["64:ff9b::7f00:1", "forbidden"],
    ["2002:7f00:1::", "forbidden"],
    ["fe80::1", "link-local"],
    ["fd00::1", "private"],
    ["fd00:ec2::254", "forbidden"],
    ["2606:4700::1111", "public"],
    ["ff02::1", "forbidden"],
    ["not an address", "forbidden"],
  ] as const) {
    it(`${address} is ${kind} [A031]`, () => assert.equal(classifyAddress(address), kind));
  }

  const policy = (allow: string[] = [], isControlPlane = () => false): DestinationPolicy => ({
    allowHttpHosts: new Set(allow),
    isControlPlane,
  });
  const refusal = async (text: string, rules: DestinationPolicy, addresses: string[] = []) => {
    const resolver = createResolver(rules, async () =>
      addresses.map((address) => ({ address, family: address.includes(":") ? 6 : 4 })),
    );
    try {
      await resolver(parse(text));
    } catch (error) {
      return (error as { reason: string }).reason;
    }
    return "allowed";
  };

  for (const text of [
    "https://0x7f.1/",
    "https://2130706433/",
    "https://017700000001/",
    "https://127.1/",
    "https://①②⑦.0.0.1/",
    "https://[::ffff:7f00:1]/",
  ]) {
    it(`refuses ${text} [A031]`, async () => assert.equal(await refusal(text, policy()), "DEST_NOT_ALLOWED"));
  }

  it("refuses plain HTTP where the operator does not list the host [A003]", async () => {
    assert.equal(await refusal("http://good.test/", policy(), ["8.8.8.8"]), "SCHEME_NOT_ALLOWED");
    assert.equal(await refusal("http://good.test/", policy(["good.test"]), ["8.8.8.8"]), "allowed");
    assert.equal(
      await refusal("http://good.test:81/", policy(["good.test:80"]), ["8.8.8.8"]),
      "SCHEME_NOT_ALLOWED",
    );
  });

  it("matches a listed host exactly [A005]", async () => {
    const rules = policy(["good.test"]);
    for (const text of [
      "http://good.test.evil.test/",
      "http://evil-good.test/",
      "http://evil.test/good.test",
    ]) {
      assert.equal(await refusal(text, rules, ["8.8.8.8"]), "SCHEME_NOT_ALLOWED");
    }
  });

  it("refuses a name that points inside, also when it points outside as well [A033] [B108]", async () => {
    assert.equal(await refusal("https://rebind.test/", policy(), ["127.0.0.1"]), "DEST_NOT_ALLOWED");
    assert.equal(
      await refusal("https://rebind.test/", policy(), ["8.8.8.8", "10.0.0.1"]),
      "DEST_NOT_ALLOWED",
    );
    assert.equal(await refusal("https://outside.test/", policy(), ["8.8.8.8"]), "allowed");
  });

  it("never allows instance metadata, even listed", async () => {
    const rules = policy(["metadata.test", "169.254.169.254"]);
    assert.equal(await refusal("http://metadata.test/", rules, ["169.254.169.254"]), "DEST_NOT_ALLOWED");
    assert.equal(await refusal("http://169.254.169.254/latest", rules), "DEST_NOT_ALLOWED");
  });

  it("answers one checked address, which is the one that is dialled [A033]", async () => {
    let lookups = 0;
    const resolver = createResolver(policy(), async () => {
      lookups += 1;
      return [{ address: lookups === 1 ? "8.8.8.8" : "127.0.0.1", family: 4 }];
    });
    assert.equal((await resolver(parse("https://rebind.test/"))).address, "8.8.8.8");
  });

  it("never allows the mesh's own ports, under whatever name of this machine [A037]", async () => {
    const { isControlPlane, add } = await createControlPlane(["127.0.0.1:8200", "localhost:5432"]);
    const rules = policy(["127.0.0.1", "127.0.0.2", "inside.test", "[::1]", "::1"], isControlPlane as never);
    for (const text of ["http://127.0.0.1:8200/", "http://127.0.0.2:8200/", "http://127.0.0.1:5432/"]) {
      assert.equal(await refusal(text, rules), "DEST_NOT_ALLOWED", text);
    }
    assert.equal(await refusal("http://inside.test:8200/", rules, ["127.0.0.1"]), "DEST_NOT_ALLOWED");
    assert.equal(await refusal("http://[::1]:8200/", rules), "DEST_NOT_ALLOWED");
    assert.equal(await refusal("http://127.0.0.1:9000/", rules), "allowed");
    await add("127.0.0.1:9000");
    assert.equal(await refusal("http://127.0.0.1:9000/", rules), "DEST_NOT_ALLOWED");
  });
});
