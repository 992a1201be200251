import assert from "node:assert/strict";
import type { GanglionError } from "../../../services/common/errors/ganglion-error.ts";
import {
  patchEnvironment,
  resolveEnvironment,
} from "../../../services/session/domain/environment/resolve-environment.ts";

const NO_PACKAGES = { type: "packages", apt: [], cargo: [], gem: [], go: [], npm: [], pip: [] };

describe("resolving an environment", () => {
  it("is a cloud one without limits by default", () => {
    assert.deepEqual(resolveEnvironment("e", { name: "x" }), {
      name: "x",
      description: null,
      config: { type: "cloud", networking: { type: "unrestricted" }, packages: NO_PACKAGES },
      metadata: {},
    });
  });

  it("fills in limited networking", () => {
    const { config } = resolveEnvironment("e", {
      name: "x",
      config: { type: "cloud", networking: { type: "limited", allowed_hosts: ["a.example", "*.b.example"] } },
    });
    assert.deepEqual(config.networking, {
      type: "limited",
      allowed_hosts: ["a.example", "*.b.example"],
      allow_mcp_servers: false,
      allow_package_managers: false,
    });
  });

  for (const [field, body] of [
    ["e.name", { name: "" }],
    ["e.scope", { scope: "organization" }],
    ["e.surprise", { surprise: 1 }],
    ["e.config.type", { config: { type: "self_hosted" } }],
    ["e.config.type", { config: {} }],
    ["e.config.gpu", { config: { type: "cloud", gpu: 1 } }],
    ["e.config.packages.pip", { config: { type: "cloud", packages: { pip: ["pandas"] } } }],
    ["e.config.networking.type", { config: { type: "cloud", networking: { type: "open" } } }],
    [
      "e.config.networking.allowed_hosts[0]",
      { config: { type: "cloud", networking: { type: "limited", allowed_hosts: ["http://x"] } } },
    ],
    [
      "e.config.networking.allowed_hosts",
      { config: { type: "cloud", networking: { type: "unrestricted", allowed_hosts: [] } } },
    ],
    ["e.metadata.k", { metadata: { k: null } }],
  ] as [string, object][]) {
    it(`refuses ${field} of ${JSON.stringify(body)}`, () => {
      assert.throws(
        () => resolveEnvironment("e", { name: "x", ...body }),
        (error: GanglionError) => error.violations.some((violation) => violation.field === field),
      );
    });
  }

  it("an update keeps what is omitted, also inside the configuration", () => {
    const current = resolveEnvironment("e", {
      name: "x",
      description: "d",
      metadata: { a: "1" },
      config: { type: "cloud", networking: { type: "limited" } },
    });
    const patched = patchEnvironment("p", current, {
      config: { type: "cloud" },
      metadata: { a: "", b: "2" },
    });
    assert.deepEqual(patched, { ...current, metadata: { b: "2" } });
    assert.equal(patchEnvironment("p", current, { description: null }).description, null);
    assert.equal(patchEnvironment("p", current, { description: "" }).description, "");
    assert.equal(patchEnvironment("p", current, { name: null }).name, "x");
  });
});
