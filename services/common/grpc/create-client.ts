import { Client } from "@grpc/grpc-js";
import { GanglionError } from "../errors/ganglion-error.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import type { Tracing } from "../telemetry/tracing.ts";
import { createChannelCredentials } from "../tls/channel-credentials.ts";
import type { TlsBundle } from "../tls/tls-bundle.ts";
import type { ParentCall } from "./call-context.ts";
import { channelOptions } from "./channel-options.ts";
import { callStream, callStreamOnce, callUnary, type Dialer } from "./client-calls.ts";
import type { Definition, MethodDefinition } from "./handlers.ts";

/** How one call is made. */
export interface CallOptions {
  /** The call on whose behalf this one is made: its deadline, cancellation and trace go along. [B134] */
  parent?: ParentCall | undefined;
  /** Ends the call early, besides the parent's signal. */
  signal?: AbortSignal | undefined;
  /** Own time limit; the parent's remaining time counts when it is shorter. Default 30 s, none for streams. */
  timeoutMs?: number | undefined;
  metadata?: Record<string, string | Buffer> | undefined;
  /** Wait for a server until the deadline instead of failing with UNAVAILABLE. */
  waitForReady?: boolean | undefined;
}

/** How a client is made. */
export interface ClientOptions {
  tracing?: Tracing;
  metrics?: Metrics;
  /** Default of CallOptions.timeoutMs. */
  timeoutMs?: number;
  /** Ping interval while calls are open. Default 5 min, which every proxy's default policy allows. [B136] */
  keepaliveMs?: number;
  /** Image from which idempotent methods are known; those are retried after UNAVAILABLE. null = never retry. */
  image?: string | null;
}

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
 * `expectedService` at the other end only, spreads calls over all addresses, and reports every
 * failure as a GanglionError whose domain names the part at fault. A streaming call starts when
 * its first message is asked for, and is cancelled when its loop is left.
 */
export function createClient<D extends Definition>(
  definition: D,
  address: string,
  tls: TlsBundle,
  expectedService: string,
  options: ClientOptions = {},
): MeshClient<D> {
  const client = new Client(
    address,
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
  for (const [name, method] of Object.entries(definition)) methods[name] = bind(dialer, method);
  return methods as MeshClient<D>;
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
