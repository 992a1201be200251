import { lookup } from "node:dns/promises";
import { networkInterfaces } from "node:os";

/** Knows the mesh's own listeners. */
export type IsControlPlane = (address: string, port: number) => boolean;

/**
 * Makes the hard denial of the mesh's own ports (case A037): each as named, and on every address of this machine, since
 * a listener can be reached under all of them. `endpoints` may grow: a port is known only once it listens.
 */
export async function createControlPlane(
  endpoints: readonly string[],
): Promise<{ isControlPlane: IsControlPlane; add: (endpoint: string) => Promise<void> }> {
  const exact = new Set<string>();
  const localPorts = new Set<number>();
  const add = async (endpoint: string) => {
    const colon = endpoint.lastIndexOf(":");
    const host = endpoint.slice(0, colon).replace(/^\[|\]$/g, "");
    const port = Number(endpoint.slice(colon + 1));
    if (!(port > 0)) return;
    const addresses = await lookup(host, { all: true }).catch(() => []);
    for (const { address } of addresses) {
      exact.add(`${address} ${port}`);
      if (isLocal(address)) localPorts.add(port);
    }
  };
  for (const endpoint of endpoints) await add(endpoint);
  const isControlPlane = (address: string, port: number) =>
    exact.has(`${address} ${port}`) || (localPorts.has(port) && isLocal(address));
  return { isControlPlane, add };
}

function isLocal(address: string): boolean {
  if (address === "::1" || address === "::" || address === "0.0.0.0" || address.startsWith("127."))
    return true;
  if (address.startsWith("::ffff:")) return true;
  return Object.values(networkInterfaces()).some((of) => of?.some((own) => own.address === address));
}
