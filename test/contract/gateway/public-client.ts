import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Client, type ClientReadableStream, credentials, Metadata, type ServiceError } from "@grpc/grpc-js";
import {
  SessionServiceService,
  WatchEventsRequest,
  type WatchEventsResponse,
} from "../../../services/gen/ganglion/session/v1/session_service.ts";
import type { GatewayUnderTest } from "./gateway-kit.ts";

/** dial opens a channel to the public address; without a certificate the caller shows none. */
export async function dial(
  mesh: GatewayUnderTest,
  certificate?: { service: string; instance: string },
): Promise<Client> {
  const folder = certificate
    ? await mesh.ca.directory(certificate.service, certificate.instance)
    : await mesh.ca.directory("gateway");
  const read = (name: string) => readFileSync(join(folder, name));
  const tls = certificate
    ? credentials.createSsl(read("ca.pem"), read("key.pem"), read("cert.pem"))
    : credentials.createSsl(read("ca.pem"));
  return new Client(mesh.grpc.replace("127.0.0.1", "localhost"), tls);
}

/** bearer is the metadata with that API key. */
export function bearer(key: string): Metadata {
  const metadata = new Metadata();
  metadata.set("authorization", `Bearer ${key}`);
  return metadata;
}

/** getSession asks for a session, which the tests' service never has, and resolves with the error. */
export function getSession(
  client: Client,
  metadata = new Metadata(),
  sessionId = "sesn_1",
  deadlineMs = 10_000,
): Promise<ServiceError> {
  const { path, requestSerialize, responseDeserialize } = SessionServiceService.getSession;
  return new Promise<ServiceError>((resolve) => {
    client.makeUnaryRequest(
      path,
      requestSerialize,
      responseDeserialize,
      { sessionId },
      metadata,
      { deadline: Date.now() + deadlineMs },
      (error) => resolve(error as ServiceError),
    );
  });
}

/** watch opens the stream of a session's events. */
export function watch(
  client: Client,
  metadata: Metadata,
  sessionId = "sesn_1",
): ClientReadableStream<WatchEventsResponse> {
  const { path, requestSerialize, responseDeserialize } = SessionServiceService.watchEvents;
  const request = WatchEventsRequest.fromPartial({ sessionId });
  return client.makeServerStreamRequest(path, requestSerialize, responseDeserialize, request, metadata, {});
}
