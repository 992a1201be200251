import type { IncomingMessage } from "node:http";
import { isCredentialShaped } from "../../domain/credential-shaped.ts";
import { proxyError } from "../../domain/proxy-error.ts";
import type { OutwardAnswer } from "../send-outward.ts";
import type { GitTarget } from "./read-git-target.ts";
import type { PushCommands } from "./receive-commands.ts";

const PROTOCOL = /^version=[0-2]$/;

/** Judges what git sends beside the body; nothing of it may carry a credential (case A025). */
export function judgeHeaders(request: IncomingMessage, { service, isAdvertisement }: GitTarget): void {
  for (const name of Object.keys(request.headersDistinct)) {
    if (!isCredentialShaped(name)) continue;
    throw proxyError("HEADER_FORBIDDEN", { metadata: { header: name.slice(0, 64) } });
  }
  if (isAdvertisement) return;
  const isType = request.headers["content-type"] === `application/x-${service}-request`;
  if (!isType) throw proxyError("INVALID_FIELD", { message: "the content-type is not the service's" });
  const coding = request.headers["content-encoding"];
  // What a push wants to change is read here, and so it must be readable.
  const isReadable = coding === undefined || (coding === "gzip" && service === "git-upload-pack");
  if (!isReadable) throw proxyError("HEADER_FORBIDDEN", { metadata: { header: "content-encoding" } });
}

/** The headers of a request as they go out, name and value in turn; of the caller's only what git needs. */
export function headersOf(
  request: IncomingMessage,
  { isAdvertisement, service }: GitTarget,
  token?: string,
): string[] {
  const headers = ["user-agent", "git/2 (ganglion)", "accept-encoding", "identity"];
  const { "git-protocol": protocol, "content-encoding": coding, "content-length": length } = request.headers;
  if (typeof protocol === "string" && PROTOCOL.test(protocol)) headers.push("git-protocol", protocol);
  if (token !== undefined) {
    headers.push("authorization", `Basic ${Buffer.from(`x-access-token:${token}`).toString("base64")}`);
  }
  if (isAdvertisement) return [...headers, "accept", "*/*"];
  headers.push(
    "content-type",
    `application/x-${service}-request`,
    "accept",
    `application/x-${service}-result`,
  );
  if (coding !== undefined) headers.push("content-encoding", coding);
  if (length !== undefined) headers.push("content-length", length);
  return headers;
}

/** A git server's answer is passed on when it is one; what else it says stays outside. */
export function judgeAnswer({ status, headers, body }: OutwardAnswer, contentType: string): void {
  if (status === 200 && headers["content-type"] === contentType) return;
  body.destroy();
  if (status >= 300 && status < 400) throw proxyError("GIT_REDIRECT");
  // Not passed on as it is: git would ask its user for a password.
  if (status === 401 || status === 403) throw proxyError("UPSTREAM_UNAUTHORIZED");
  if (status === 404) throw proxyError("REPO_NOT_FOUND");
  throw proxyError("UPSTREAM_MALFORMED");
}

/** The body as it goes out: what was read of a push already, then the rest, up to a limit. */
export async function* bounded(
  request: IncomingMessage,
  commands: PushCommands | undefined,
  most: number,
): AsyncGenerator<Buffer> {
  let size = commands?.read.length ?? 0;
  if (commands) yield commands.read;
  for await (const chunk of request.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > most) throw proxyError("MESSAGE_TOO_LARGE");
    yield chunk;
  }
}
