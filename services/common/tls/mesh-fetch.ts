import type { Readable } from "node:stream";
import { Agent, buildConnector, type Dispatcher, request } from "undici";
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
 * only. It knows what SDKs ask of one: an address, a method, headers, a body in memory or as it comes, a signal. A whole fetch takes twice
 * the time until the request is on its way.
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
  const fetch = async (input: string | URL, init: RequestInit = {}): Promise<Response> => {
    const { method = "GET", headers, body, signal } = init;
    const answer = await request(input, {
      dispatcher: agent,
      method: method as Dispatcher.HttpMethod,
      headers: Object.fromEntries(new Headers(headers)),
      // Whatever can be gone through is sent piece by piece, as it comes.
      ...(body ? { body: body as string | Uint8Array | Readable } : {}),
      ...(signal ? { signal } : {}),
    });
    return toResponse(answer);
  };
  return {
    fetch: fetch as typeof globalThis.fetch,
    close: () => {
      bundle.off("change", renew);
      return agent.close();
    },
  };
}

// Statuses with which a Response must not have a body.
const WITHOUT_BODY = new Set([101, 103, 204, 205, 304]);

function toResponse({ statusCode: status, headers: given, body }: Dispatcher.ResponseData): Response {
  const headers = new Headers();
  for (const [name, value] of Object.entries(given))
    for (const one of Array.isArray(value) ? value : [value])
      if (one !== undefined) headers.append(name, one);
  // A request that is given up while nobody reads reports that as an error, which would be nobody's.
  body.on("error", () => {});
  if (WITHOUT_BODY.has(status)) {
    body.resume();
    return new Response(null, { status, headers });
  }
  const chunks = body[Symbol.asyncIterator]();
  const stream = new ReadableStream<Uint8Array>(
    {
      pull: async (reader) => {
        const { done, value } = await chunks.next();
        if (done) reader.close();
        else reader.enqueue(value as Uint8Array);
      },
      cancel: () => void body.destroy(),
    },
    { highWaterMark: 0 },
  );
  return new Response(stream, { status, headers });
}
