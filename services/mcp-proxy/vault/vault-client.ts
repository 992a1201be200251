import nodeVault from "node-vault";
import { crashPoint } from "../../common/crash/crash-point.ts";
import type { Transport } from "./transport.ts";
import { kindOfStatus, VaultFailure } from "./vault-failure.ts";

/** Vault's answer: its own id of the request, and what it carried. */
export interface VaultAnswer {
  request_id?: string;
  data?: Record<string, unknown> | null;
  auth?: Record<string, unknown> | null;
}

/** Calls Vault with a token that the caller names each time; there is no token that one call could leave to another (A121). */
export interface VaultClient {
  read(path: string, token: string): Promise<VaultAnswer>;
  write(path: string, data: object, token?: string): Promise<VaultAnswer>;
  /** Changes fields of a KV version 2 secret without reading it. */
  patch(path: string, data: object, token: string): Promise<VaultAnswer>;
  remove(path: string, token: string): Promise<void>;
  close(): Promise<void>;
}

/**
 * Makes the client. This is the only file that knows node-vault. Everything it would take from elsewhere is given:
 * endpoint (else VAULT_ADDR), transport (else axios, which follows redirects and proxies), and a `debug` that does
 * nothing (its own prints what is written).
 */
export function createVaultClient(addr: string, transport: Transport): VaultClient {
  const client = nodeVault({
    endpoint: addr,
    apiVersion: "v1",
    "request-promise": transport,
    debug: () => {},
  });
  const withToken = (token: string | undefined) =>
    token === undefined ? {} : { headers: { "X-Vault-Token": token } };
  return {
    read: async (path, token) => {
      crashPoint("vault.read.send");
      const answer = await strip(client.read(path, withToken(token)));
      crashPoint("vault.read.receive");
      return answer;
    },
    write: async (path, data, token) => {
      crashPoint("vault.write.send");
      const answer = await strip(client.write(path, data, withToken(token)));
      crashPoint("vault.write.receive");
      return answer;
    },
    patch: async (path, data, token) => {
      crashPoint("vault.patch.send");
      // Not `client.update`: it replaces all headers, the token among them.
      const headers = { "X-Vault-Token": token, "Content-Type": "application/merge-patch+json" };
      const asked = { method: "PATCH", path: `/${path}`, json: data, headers };
      const answer = await strip(client.request(asked as Parameters<typeof client.request>[0]));
      crashPoint("vault.patch.receive");
      return answer;
    },
    remove: async (path, token) => {
      crashPoint("vault.remove.send");
      await strip(client.delete(path, withToken(token)));
      crashPoint("vault.remove.receive");
    },
    close: () => transport.close(),
  };
}

async function strip(work: Promise<unknown>): Promise<VaultAnswer> {
  let answer: unknown;
  try {
    answer = await work;
  } catch (error) {
    if (error instanceof VaultFailure) throw error;
    const { response } = error as { response?: { statusCode?: unknown; body?: { warnings?: unknown } } };
    const status = typeof response?.statusCode === "number" ? response.statusCode : 0;
    if (status === 0) throw new VaultFailure("unreachable");
    throw new VaultFailure(kindOfStatus(status, Array.isArray(response?.body?.warnings)), status);
  }
  if (typeof answer !== "object" || answer === null) throw new VaultFailure("malformed");
  return answer as VaultAnswer;
}
