import { Agent, buildConnector, fetch as undiciFetch } from "undici";
import { expectService } from "./check-server.ts";
import type { TlsBundle } from "./tls-bundle.ts";

/** fetch over mutual TLS to one service of the mesh. */
export interface MeshFetch {
  /** For SDKs that take a fetch. Follows no redirect and knows no proxy. */
  fetch: typeof globalThis.fetch;
  close(): Promise<void>;
}

/**
 * Makes a fetch that dials with the bundle's newest certificate and accepts `expectedService`
 * only. It is undici's own fetch: an undici Agent does not work with the one built into Node.
 */
export function createMeshFetch(
  bundle: TlsBundle,
  expectedService: string,
  options: { connections?: number; headersTimeoutMs?: number; bodyTimeoutMs?: number } = {},
): MeshFetch {
  const checkServerIdentity = expectService(expectedService);
  const connect: buildConnector.connector = (target, callback) => {
    const dial = buildConnector({
      ...bundle.material(),
      minVersion: "TLSv1.3",
      checkServerIdentity,
      timeout: 5000,
      // A cached session would be resumed without asking who answers.
      maxCachedSessions: 0,
    });
    dial(target, callback);
  };
  const makeAgent = () =>
    new Agent({
      connect,
      connections: options.connections ?? 64,
      headersTimeout: options.headersTimeoutMs ?? 600_000,
      bodyTimeout: options.bodyTimeoutMs ?? 600_000,
    });
  let agent = makeAgent();
  const renew = () => {
    const old = agent;
    agent = makeAgent();
    // Requests that are under way finish on their old connections.
    old.close().catch(() => {});
  };
  bundle.on("change", renew);
  const fetch = (input: Parameters<typeof undiciFetch>[0], init?: Parameters<typeof undiciFetch>[1]) =>
    undiciFetch(input, { ...init, redirect: "manual", dispatcher: agent });
  return {
    fetch: fetch as unknown as typeof globalThis.fetch,
    close: () => {
      bundle.off("change", renew);
      return agent.close();
    },
  };
}
