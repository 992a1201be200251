import assert from "node:assert/strict";
import { ownEndpoints, PORT_NAMES, serviceEnvironment } from "../../../services/cli/up/mesh-services.ts";

describe("the mesh's own endpoints", () => {
  it("are all ports that it has but the scripted model's, and mcp-proxy is told them [A037]", () => {
    const names = [...PORT_NAMES, "rest", "grpc"];
    const ports = Object.fromEntries(names.map((name, index) => [name, 20_000 + index]));
    const at = (name: string) => `127.0.0.1:${ports[name]}`;
    const { GANGLION_PROXY_FORBIDDEN_ENDPOINTS } = serviceEnvironment("mcp-proxy", {
      at,
      postgres: {},
      scriptedModelUrl: undefined,
      allowHttpHosts: "",
      forbiddenEndpoints: ownEndpoints(ports),
      sandbox: {},
    });
    const told = new Set(GANGLION_PROXY_FORBIDDEN_ENDPOINTS?.split(","));
    for (const name of names) assert.equal(told.has(at(name)), name !== "scripted-model", name);
  });
});
