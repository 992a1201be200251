import { isIP } from "node:net";

/** True when the name in a TLS greeting is the host that was asked for. Addresses have no such name. */
export function namesHost(serverName: string | false | null | undefined, host: string): boolean {
  return isIP(host) === 0 ? serverName === host : !serverName;
}
