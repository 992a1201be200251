import { Client } from "@grpc/grpc-js";
import { GanglionError } from "../errors/ganglion-error.ts";
import { createChannelCredentials } from "../tls/channel-credentials.ts";
import type { TlsBundle } from "../tls/tls-bundle.ts";
import { channelTarget } from "./address-list.ts";
import { channelOptions } from "./channel-options.ts";
import { callStream, callStreamOnce, callUnary, type Dialer } from "./client-calls.ts";
import type { CallOptions, ClientOptions } from "./client-options.ts";
import type { Definition, MethodDefinition } from "./handlers.ts";
import { type EncodedMessage, encodeMessage } from "./message-codec.ts";

export type { CallOptions, ClientOptions } from "./client-options.ts";

type RequestOf<M> = M extends { requestDeserialize: (bytes: Buffer) => infer Req } ? Req : never;
type ResponseOf<M> = M extends { responseDeserialize: (bytes: Buffer) => infer Res } ? Res : never;
type Many<T> = AsyncIterable<T> | Iterable<T>;

/** One method of a client. */
export type ClientMethod<M> = M extends { requestStream: true; responseStream: true }
  ? (requests: Many<RequestOf<M>>, options?: CallOptions) => AsyncGenerator<ResponseOf<M>, void, undefined>
  : M extends { requestStream: true }
    ? (requests: Many<RequestOf<M>>, options?: CallOptions) => Promise<ResponseOf<M>>
    : M extends { responseStream: true }
      ? (request: RequestOf<M>, options?: CallOptions) => AsyncGenerator<ResponseOf<M>, void, undefined>
      : (request: RequestOf<M>, options?: CallOptions) => Promise<ResponseOf<M>>;

/** A client: one function per method, and what concerns the connection. */
export type MeshClient<D> = { [K in keyof D]: ClientMethod<D[K]> } & {
  /** Resolves when connected; rejects with UNAVAILABLE after the time. */
  waitForReady(timeoutMs: number): Promise<void>;
  /** Cancels nothing that runs, but takes no new calls. */
  close(): void;
};

/**
 * Makes a client for a service of the mesh. It dials with the bundle's newest certificate, accepts
 * `expectedService` at the other end only, spreads calls over all addresses (of the list, and of
 * each name in it), and reports every
 * failure as a GanglionError whose domain names the part at fault. A streaming call starts when
 * its first message is asked for, and is cancelled when its loop is left.
 */
export function createClient<D extends Definition>(
  definition: D,
  addresses: string | readonly string[],
  tls: TlsBundle,
  expectedService: string,
  options: ClientOptions = {},
): MeshClient<D> {
  const client = new Client(
    channelTarget(addresses),
    createChannelCredentials(tls, expectedService),
    channelOptions(definition, expectedService, options),
  );
  const dialer: Dialer = {
    client,
    service: expectedService,
    timeoutMs: options.timeoutMs ?? 30_000,
    tracing: options.tracing,
    metrics: options.metrics,
  };
  const methods: Record<string, unknown> = {
    waitForReady: (timeoutMs: number) => waitForReady(client, expectedService, timeoutMs),
    close: () => client.close(),
  };
  for (const name of Object.keys(options.largeRequests ?? {})) {
    if (!(name in definition)) throw new Error(`there is no method ${name}`);
  }
  for (const [name, method] of Object.entries(definition)) {
    methods[name] = bind(dialer, withEncoder(method, options.largeRequests?.[name]));
  }
  return methods as MeshClient<D>;
}

function withEncoder(
  method: MethodDefinition<unknown, unknown>,
  request: EncodedMessage | undefined,
): MethodDefinition<unknown, unknown> {
  return request ? { ...method, requestSerialize: (message) => encodeMessage(request, message) } : method;
}

function bind(dialer: Dialer, method: MethodDefinition<unknown, unknown>): unknown {
  if (method.responseStream) {
    return (input: unknown, options: CallOptions = {}) => callStream(dialer, method, input, options);
  }
  if (method.requestStream) {
    return (input: Many<unknown>, options: CallOptions = {}) =>
      callStreamOnce(dialer, method, input, options);
  }
  return (input: unknown, options: CallOptions = {}) => callUnary(dialer, method, input, options);
}

function waitForReady(client: Client, service: string, timeoutMs: number): Promise<void> {
  return new Promise((resolve, reject) => {
    client.waitForReady(Date.now() + timeoutMs, (error) => {
      if (!error) return resolve();
      const message = `${service} cannot be reached`;
      const domain = `ganglion.${service}`;
      reject(
        new GanglionError({ code: "UNAVAILABLE", reason: "UNREACHABLE", message, domain, cause: error }),
      );
    });
  });
}
