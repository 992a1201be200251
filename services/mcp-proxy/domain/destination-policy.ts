import type { Destination } from "./canonical-url.ts";
import type { Reason } from "./proxy-error.ts";

/** What kind of network an address belongs to. */
export type AddressClass = "public" | "private" | "loopback" | "link-local" | "forbidden";

/** An address a name resolved to. */
export interface ResolvedAddress {
  address: string;
  family: 4 | 6;
  class: AddressClass;
}

/** The operator's upper bound on destinations. */
export interface DestinationPolicy {
  /** "host:port" or "host": plain HTTP, private and loopback addresses are allowed there and nowhere else. */
  allowHttpHosts: ReadonlySet<string>;
  /** "address:port" of the mesh itself: never, whatever else says so (case A037). */
  isControlPlane(address: string, port: number): boolean;
}

/** Says why a destination's form may not be reached, or nothing. Addresses are judged after resolution. */
export function judgeDestination(destination: Destination, policy: DestinationPolicy): Reason | undefined {
  if (destination.scheme === "http" && !isListed(destination, policy)) return "SCHEME_NOT_ALLOWED";
  return undefined;
}

/**
 * Says why the addresses may not be dialled, or nothing. One bad address among good ones refuses all: a name that
 * points inside as well as outside is an attack or a mistake.
 */
export function judgeAddresses(
  destination: Destination,
  addresses: readonly ResolvedAddress[],
  policy: DestinationPolicy,
): Reason | undefined {
  for (const { address, class: kind } of addresses) {
    if (kind === "link-local" || kind === "forbidden") return "DEST_NOT_ALLOWED";
    if (policy.isControlPlane(address, destination.port)) return "DEST_NOT_ALLOWED";
    if (kind !== "public" && !isListed(destination, policy)) return "DEST_NOT_ALLOWED";
  }
  return addresses.length === 0 ? "UPSTREAM_UNREACHABLE" : undefined;
}

/** True for a destination that the operator lists as one of its own network. */
export function isListed(
  { host, port }: Destination,
  { allowHttpHosts }: Pick<DestinationPolicy, "allowHttpHosts">,
): boolean {
  return allowHttpHosts.has(host) || allowHttpHosts.has(`${host}:${port}`);
}
