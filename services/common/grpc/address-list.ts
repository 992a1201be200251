import { lookup } from "node:dns/promises";
import { isIP } from "node:net";
import { experimental, Metadata, status } from "@grpc/grpc-js";

type Resolver = experimental.Resolver;
type Listener = experimental.ResolverListener;
type Endpoint = experimental.Endpoint;

const SCHEME = "ganglion-list";
// How often names are looked up again, at most, while connections fail.
const MIN_PERIOD_MS = 1_000;

/**
 * channelTarget is the target of a channel to one or more addresses (host:port). grpc-js takes lists of numbers only;
 * here each entry is a number or a name, and is one place that calls may go to.
 */
export function channelTarget(addresses: string | readonly string[]): string {
  if (typeof addresses === "string") return addresses;
  const [first] = addresses;
  if (first === undefined) throw new Error("a client needs an address");
  if (addresses.length === 1) return first;
  register();
  return `${SCHEME}:${addresses.join(",")}`;
}

let isRegistered = false;
function register(): void {
  if (isRegistered) return;
  isRegistered = true;
  experimental.registerResolver(SCHEME, AddressList);
}

/** Resolves the entries of a list, and names among them anew when connections are lost. */
class AddressList implements Resolver {
  readonly #entries: readonly string[];
  readonly #listener: Listener;
  readonly #hasNames: boolean;
  #timer: NodeJS.Timeout | undefined;
  #lastAt = Number.NEGATIVE_INFINITY;
  #told = "";
  // Raised by destroy(): what is under way then is told to nobody.
  #life = 0;

  constructor(target: experimental.GrpcUri, listener: Listener) {
    this.#entries = target.path.split(",");
    this.#listener = listener;
    this.#hasNames = this.#entries.some((entry) => isIP(split(entry).host) === 0);
  }

  static getDefaultAuthority(target: experimental.GrpcUri): string {
    return target.path.split(",")[0] ?? "";
  }

  updateResolution(): void {
    if (this.#timer || (this.#told !== "" && !this.#hasNames)) return;
    const wait = Math.max(0, this.#lastAt + MIN_PERIOD_MS - performance.now());
    this.#timer = setTimeout(() => void this.#resolve(), wait);
    this.#timer.unref();
  }

  destroy(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#told = "";
    this.#lastAt = Number.NEGATIVE_INFINITY;
    this.#life += 1;
  }

  async #resolve(): Promise<void> {
    const life = this.#life;
    const found = await Promise.all(this.#entries.map(endpointOf));
    if (life !== this.#life) return;
    this.#timer = undefined;
    this.#lastAt = performance.now();
    const endpoints = found.filter((endpoint) => endpoint !== undefined);
    const told = JSON.stringify(endpoints);
    if (endpoints.length > 0) {
      // The same again would make the channel begin anew.
      if (told !== this.#told) this.#listener(experimental.statusOrFromValue(endpoints), {}, null, "");
      this.#told = told;
    } else if (this.#told === "") {
      const details = "none of the names is known";
      const error = { code: status.UNAVAILABLE, details, metadata: new Metadata() };
      this.#listener(experimental.statusOrFromError(error), {}, null, "");
    }
  }
}

async function endpointOf(entry: string): Promise<Endpoint | undefined> {
  const { host, port } = split(entry);
  if (isIP(host) !== 0) return { addresses: [{ host, port }] };
  try {
    const found = await lookup(host, { all: true });
    return { addresses: found.map(({ address }) => ({ host: address, port })) };
  } catch {
    // The others may be enough.
    return undefined;
  }
}

function split(entry: string): { host: string; port: number } {
  const at = entry.lastIndexOf(":");
  return { host: entry.slice(0, at).replace(/^\[|\]$/g, ""), port: Number(entry.slice(at + 1)) };
}
