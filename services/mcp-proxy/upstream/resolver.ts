import { lookup } from "node:dns/promises";
import { isIP } from "node:net";
import type { Destination } from "../domain/canonical-url.ts";
import {
  type DestinationPolicy,
  judgeAddresses,
  judgeDestination,
  type ResolvedAddress,
} from "../domain/destination-policy.ts";
import { proxyError } from "../domain/proxy-error.ts";
import { classifyAddress } from "./address-class.ts";

/** Finds the one address that a request will be sent to, and answers only one that may be dialled. */
export interface Resolver {
  (destination: Destination): Promise<ResolvedAddress>;
  /** The same when nobody has to be asked; undefined when somebody has, or when it may not be dialled. */
  known(destination: Destination): ResolvedAddress | undefined;
}

const KEEP_MS = 10_000;
const LOOKUP_MS = 4000;
const MAX_KEPT = 1000;

/**
 * Makes the resolver: one resolution, all of its addresses judged, the first one dialled (case A033). Answers are kept
 * for ten seconds and judged again each time.
 */
export function createResolver(
  policy: DestinationPolicy,
  resolve: (host: string) => Promise<{ address: string; family: number }[]> = (host) =>
    lookup(host, { all: true, order: "ipv4first" }),
): Resolver {
  const kept = new Map<string, { until: number; addresses: ResolvedAddress[] }>();
  const knownOf = (host: string): ResolvedAddress[] | undefined => {
    const family = isIP(host);
    if (family !== 0) return [{ address: host, family: family as 4 | 6, class: classifyAddress(host) }];
    const known = kept.get(host);
    return known && known.until > Date.now() ? known.addresses : undefined;
  };
  const addressesOf = async (host: string): Promise<ResolvedAddress[]> => {
    const known = knownOf(host);
    if (known) return known;
    const found = await inTime(resolve(host)).catch(() => []);
    const addresses = found.map(({ address, family: kind }) => ({
      address,
      family: kind === 6 ? (6 as const) : (4 as const),
      class: classifyAddress(address),
    }));
    if (kept.size >= MAX_KEPT) kept.clear();
    if (addresses.length > 0) kept.set(host, { until: Date.now() + KEEP_MS, addresses });
    return addresses;
  };
  const resolved = async (destination: Destination) => {
    const early = judgeDestination(destination, policy);
    if (early) throw proxyError(early);
    const addresses = await addressesOf(destination.host);
    const reason = judgeAddresses(destination, addresses, policy);
    if (reason) throw proxyError(reason);
    return addresses[0] as ResolvedAddress;
  };
  const known = (destination: Destination) => {
    if (judgeDestination(destination, policy)) return undefined;
    const addresses = knownOf(destination.host);
    return addresses && !judgeAddresses(destination, addresses, policy) ? addresses[0] : undefined;
  };
  return Object.assign(resolved, { known });
}

async function inTime<T>(work: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error("no answer")), LOOKUP_MS);
  });
  return Promise.race([work, late]).finally(() => clearTimeout(timer));
}
