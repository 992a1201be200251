import type { CallContext } from "./call-context.ts";

/** A method of a generated grpc-js service definition. */
export interface MethodDefinition<Req, Res> {
  path: string;
  requestStream: boolean;
  responseStream: boolean;
  requestSerialize: (value: Req) => Buffer;
  requestDeserialize: (bytes: Buffer) => Req;
  responseSerialize: (value: Res) => Buffer;
  responseDeserialize: (bytes: Buffer) => Res;
}

/** A generated service definition, for example SessionServiceService. */
// biome-ignore lint/suspicious/noExplicitAny: methods have any message types
export type Definition = Record<string, MethodDefinition<any, any>>;

/** Handler of a unary method. */
export interface Unary<Req, Res> {
  kind: "unary";
  run: (request: Req, ctx: CallContext) => Promise<Res>;
}

/** Handler of a method that answers with a stream. */
export interface ServerStream<Req, Res> {
  kind: "server_stream";
  run: (request: Req, ctx: CallContext) => AsyncIterable<Res>;
  options: StreamOptions<Res>;
}

/** Handler of a method that takes a stream. */
export interface ClientStream<Req, Res> {
  kind: "client_stream";
  run: (requests: AsyncIterable<Req>, ctx: CallContext) => Promise<Res>;
}

/** Handler of a method with streams both ways. */
export interface Bidi<Req, Res> {
  kind: "bidi";
  run: (requests: AsyncIterable<Req>, ctx: CallContext) => AsyncIterable<Res>;
  options: StreamOptions<Res>;
}

/** How an answer stream behaves. */
export interface StreamOptions<Res> {
  /**
   * Facts for resuming after the last message sent, for example {position: "42"}. They are put
   * into the error when the server ends the stream (DRAINING, CONSUMER_TOO_SLOW).
   */
  resume?(last: Res): Record<string, string>;
}

/** Any handler. */
// biome-ignore lint/suspicious/noExplicitAny: handlers have any message types
export type AnyHandler = Unary<any, any> | ServerStream<any, any> | ClientStream<any, any> | Bidi<any, any>;

/** Makes a unary handler. It may be async and may throw: the caller gets a status either way. */
export function unary<Req, Res>(run: Unary<Req, Res>["run"]): Unary<Req, Res> {
  return { kind: "unary", run };
}

/**
 * Makes a handler that answers with a stream, usually an async generator. The next message is
 * asked for when the reader has room; clean up in `finally`, and wait only for what `ctx.signal`
 * ends.
 */
export function serverStream<Req, Res>(
  run: ServerStream<Req, Res>["run"],
  options: StreamOptions<Res> = {},
): ServerStream<Req, Res> {
  return { kind: "server_stream", run, options };
}

/**
 * Makes a handler that takes a stream and answers once. The requests of a caller that leaves may end like those of one
 * that is done (its transport ends the stream before it resets it): what counts must say itself when it is whole.
 */
export function clientStream<Req, Res>(run: ClientStream<Req, Res>["run"]): ClientStream<Req, Res> {
  return { kind: "client_stream", run };
}

/** Makes a handler with streams both ways. */
export function bidi<Req, Res>(run: Bidi<Req, Res>["run"], options: StreamOptions<Res> = {}): Bidi<Req, Res> {
  return { kind: "bidi", run, options };
}

type RequestOf<M> = M extends { requestDeserialize: (bytes: Buffer) => infer Req } ? Req : never;
type ResponseOf<M> = M extends { responseDeserialize: (bytes: Buffer) => infer Res } ? Res : never;

/** The kind of handler that a method of a definition needs. */
export type HandlerOf<M> = M extends { requestStream: true; responseStream: true }
  ? Bidi<RequestOf<M>, ResponseOf<M>>
  : M extends { requestStream: true }
    ? ClientStream<RequestOf<M>, ResponseOf<M>>
    : M extends { responseStream: true }
      ? ServerStream<RequestOf<M>, ResponseOf<M>>
      : Unary<RequestOf<M>, ResponseOf<M>>;

/** Handlers for all methods of a definition. */
export type HandlersOf<D> = { [K in keyof D]: HandlerOf<D[K]> };

/** A service definition with its handlers, ready for startServer. */
export interface Implementation {
  definition: Definition;
  handlers: ReadonlyMap<string, AnyHandler>;
}

/** Binds handlers to a generated definition; every method must have one. */
export function implement<D extends Definition>(definition: D, handlers: HandlersOf<D>): Implementation {
  return { definition, handlers: new Map(Object.entries(handlers as Record<string, AnyHandler>)) };
}

/**
 * Binds handlers to some methods of a definition, for a door that passes only these on. The
 * others answer UNIMPLEMENTED, to those whom the protos allow to call them.
 */
export function implementSome<D extends Definition>(
  definition: D,
  handlers: Partial<HandlersOf<D>>,
): Implementation {
  return { definition, handlers: new Map(Object.entries(handlers as Record<string, AnyHandler>)) };
}
