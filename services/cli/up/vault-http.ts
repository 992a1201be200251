import { Agent, request } from "undici";
import { checkVaultServer } from "../../common/tls/check-vault-server.ts";

/** Where a Vault or OpenBao is and whom to trust as it. */
export interface VaultAddress {
  /** https URL; nothing else is spoken to. */
  readonly addr: string;
  readonly caPem?: string;
  readonly namespace?: string;
  readonly timeoutMs?: number;
}

/** What one call sends besides its path. */
export interface VaultCall {
  readonly token?: string;
  readonly body?: Readonly<Record<string, unknown>>;
  /** Asks for the answer in a wrapping token that lives this long, for example "120s". */
  readonly wrapTtl?: string;
  /** Instead of the address's own. */
  readonly timeoutMs?: number;
  /** Statuses that are answers, not failures, besides 2xx. */
  readonly accept?: readonly number[];
}

/** An answer, with an empty body read as an empty object. */
export interface VaultReply {
  readonly status: number;
  readonly body: Readonly<Record<string, unknown>>;
}

/** VaultRefusal is a call that Vault did not carry out. It never holds a token or what was sent. */
export class VaultRefusal extends Error {
  /** 0 when Vault could not be reached. */
  readonly status: number;
  readonly errors: readonly string[];

  constructor(path: string, status: number, errors: readonly string[]) {
    super(`vault ${path}: ${status === 0 ? "unreachable" : status} ${errors.join("; ").trim()}`.trim());
    this.name = "VaultRefusal";
    this.status = status;
    this.errors = errors;
  }
}

const TIMEOUT_MS = 10_000;
const MAX_REPLY_BYTES = 4 << 20;

/**
 * VaultHttp calls Vault's API: TLS with a known authority, a time limit on every call, and no redirect is ever
 * followed, since a redirect would take the token to somebody else. [M14]
 */
export class VaultHttp {
  readonly address: VaultAddress;
  readonly #agent: Agent;

  constructor(address: VaultAddress) {
    const url = URL.canParse(address.addr) ? new URL(address.addr) : undefined;
    if (url?.protocol !== "https:" || url.username || url.password) {
      throw new Error("the address of a Vault must be an https URL without user name and password");
    }
    this.address = address;
    this.#agent = new Agent({
      connect: {
        minVersion: "TLSv1.2",
        checkServerIdentity: checkVaultServer,
        ...(address.caPem === undefined ? {} : { ca: address.caPem }),
        timeout: address.timeoutMs ?? TIMEOUT_MS,
      },
    });
  }

  /** call sends one request; a status that is neither 2xx nor accepted is thrown as a VaultRefusal. */
  async call(
    method: "GET" | "PUT" | "POST" | "DELETE",
    path: string,
    call: VaultCall = {},
  ): Promise<VaultReply> {
    const { status, text } = await this.#send(method, path, call);
    const body = readObject(text);
    if ((status >= 200 && status < 300) || call.accept?.includes(status)) return { status, body };
    throw new VaultRefusal(path, status, readErrors(body));
  }

  /** close drops all connections. */
  async close(): Promise<void> {
    await this.#agent.destroy();
  }

  async #send(method: string, path: string, call: VaultCall): Promise<{ status: number; text: string }> {
    const { namespace, timeoutMs } = this.address;
    try {
      const reply = await request(new URL(`/v1/${path}`, this.address.addr), {
        method: method as "GET",
        dispatcher: this.#agent,
        signal: AbortSignal.timeout(call.timeoutMs ?? timeoutMs ?? TIMEOUT_MS),
        headers: {
          "x-vault-request": "true",
          ...(namespace === undefined ? {} : { "x-vault-namespace": namespace }),
          ...(call.token === undefined ? {} : { "x-vault-token": call.token }),
          ...(call.wrapTtl === undefined ? {} : { "x-vault-wrap-ttl": call.wrapTtl }),
          ...(call.body === undefined ? {} : { "content-type": "application/json" }),
        },
        ...(call.body === undefined ? {} : { body: JSON.stringify(call.body) }),
      });
      return { status: reply.statusCode, text: await readText(reply.body) };
    } catch (cause) {
      // The cause may hold the request, and with it the token: only its code goes on. [M13]
      const code = (cause as { code?: unknown }).code;
      const reason = typeof code === "string" ? code : ((cause as Error).name ?? "failed");
      throw new VaultRefusal(path, 0, [reason]);
    }
  }
}

async function readText(body: AsyncIterable<Buffer>): Promise<string> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of body) {
    length += chunk.length;
    if (length > MAX_REPLY_BYTES) throw new Error("the reply is too large");
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}

/** A body that is not a JSON object (a proxy's HTML page, a redirect) reads as empty. */
function readObject(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value)
      ? (value as Record<string, unknown>)
      : {};
  } catch {
    return {};
  }
}

function readErrors(body: Readonly<Record<string, unknown>>): string[] {
  return Array.isArray(body.errors) ? body.errors.filter((item) => typeof item === "string") : [];
}
