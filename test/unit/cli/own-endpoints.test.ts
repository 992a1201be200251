import assert from "node:assert/strict";
import {
  ownEndpoints,
  portNames,
  serviceEnvironment,
  servicesOf,
} from "../../../services/cli/up/mesh-services.ts";

describe("the mesh's own endpoints", () => {
  it("are all ports that it has but the scripted model's, and mcp-proxy is told them [A037]", () => {
    const services = servicesOf(3);
    const names = [...portNames(services), "rest", "grpc"];
    const ports = Object.fromEntries(names.map((name, index) => [name, 20_000 + index]));
    const at = (name: string) => `127.0.0.1:${ports[name]}`;
    const { GANGLION_PROXY_FORBIDDEN_ENDPOINTS } = serviceEnvironment("mcp-proxy", {
      services,
      at,
      postgres: {},
      scriptedModelUrl: undefined,
      allowHttpHosts: "",
      forbiddenEndpoints: ownEndpoints(ports),
      own: {},
    });
    const told = new Set(GANGLION_PROXY_FORBIDDEN_ENDPOINTS?.split(","));
    for (const name of names) assert.equal(told.has(at(name)), name !== "scripted-model", name);
  });

  it("tell whoever calls the session service of all its replicas", () => {
    const services = servicesOf(3);
    const context = { services, at: (name: string) => name, postgres: {}, scriptedModelUrl: undefined };
    for (const service of ["harness", "gateway", "sandbox", "mcp-proxy"] as const) {
      const more = {
        allowHttpHosts: "",
        forbiddenEndpoints: [],
        own: {},
      };
      const { GANGLION_SESSION_ADDR } = serviceEnvironment(service, { ...context, ...more });
      assert.equal(GANGLION_SESSION_ADDR, "session-1,session-2,session-3", service);
    }
  });
});
