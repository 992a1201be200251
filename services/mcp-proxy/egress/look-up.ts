import type { Destination } from "../domain/canonical-url.ts";
import type { ResolvedAddress } from "../domain/destination-policy.ts";
import { reasonOf } from "../domain/proxy-error.ts";
import type { Resolver } from "../upstream/resolver.ts";

/** The one resolution of a request's destination, which is part of its decision (case A033). */
export interface LookUp {
  /** Resolves the name, once; throws for an address that may not be dialled. */
  resolve(destination: Destination): Promise<void>;
  /** The one address that may be dialled; throws when the name has none. */
  address(): ResolvedAddress;
}

/** Makes it. A name without an address is no denial: the request was allowed and came to nothing. */
export function createLookUp(resolver: Resolver): LookUp {
  let address: ResolvedAddress | undefined;
  let failure: unknown;
  return {
    resolve: async (destination) => {
      if (address || failure) return;
      try {
        address = await resolver(destination);
      } catch (error) {
        if (reasonOf(error) !== "UPSTREAM_UNREACHABLE") throw error;
        failure = error;
      }
    },
    address: () => {
      if (!address) throw failure;
      return address;
    },
  };
}
