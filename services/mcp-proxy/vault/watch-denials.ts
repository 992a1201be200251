import type { ProxyLogin } from "./proxy-login.ts";
import type { VaultClient } from "./vault-client.ts";
import { isVaultFailure } from "./vault-failure.ts";

/**
 * A client that tells the login when Vault refuses a call made with it. A token that was revoked is found out by the first
 * call that needs it, and not only by the next renewal, which may be most of an hour away (case B120).
 */
export function watchDenials(client: VaultClient, login: Pick<ProxyLogin, "token" | "suspect">): VaultClient {
  const watched = async <T>(token: string | undefined, work: Promise<T>): Promise<T> => {
    try {
      return await work;
    } catch (error) {
      if (isVaultFailure(error, "denied") && token === login.token()) login.suspect();
      throw error;
    }
  };
  return {
    read: (path, token) => watched(token, client.read(path, token)),
    write: (path, data, token) => watched(token, client.write(path, data, token)),
    patch: (path, data, token) => watched(token, client.patch(path, data, token)),
    remove: (path, token) => watched(token, client.remove(path, token)),
    close: () => client.close(),
  };
}
