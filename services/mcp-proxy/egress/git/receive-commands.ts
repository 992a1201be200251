import type { IncomingMessage } from "node:http";
import { proxyError } from "../../domain/proxy-error.ts";
import { createPktReader } from "./pkt-line.ts";

/** What a push wants to change, and the bytes that said so. */
export interface PushCommands {
  refs: string[];
  capabilities: ReadonlySet<string>;
  /** All that has been read of the body, the beginning of the pack included. */
  read: Buffer;
}

const MAX_LIST_BYTES = 1 << 20;
const COMMAND = /^([0-9a-f]{40}|[0-9a-f]{64}) ([0-9a-f]{40}|[0-9a-f]{64}) (refs\/[\x21-\x7e\x80-\xff]+)$/;
const SHALLOW = /^shallow ([0-9a-f]{40}|[0-9a-f]{64})$/;
// What git itself forbids in a ref (git-check-ref-format), so that no two readers take it for two different ones.
const SUSPECT = /\.\.|@\{|\/\/|\/\.|\.lock(\/|$)|[\s~^:?*[\\]|[/.]$/;

/**
 * Reads the list of commands with which a push begins (gitprotocol-pack), before anything of it goes on. Signed pushes
 * and push options are refused: the one repeats the list where nobody here looks, the other asks the server for things
 * that are no refs.
 */
export async function readCommands(request: IncomingMessage): Promise<PushCommands> {
  const reader = createPktReader();
  const refs: string[] = [];
  let capabilities: Set<string> | undefined;
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
    chunks.push(chunk);
    size += chunk.length;
    const pkts = reader.push(chunk);
    if (!pkts) throw proxyError("INVALID_FIELD", { message: "the push is not in git's format" });
    for (const pkt of pkts) {
      if (pkt.kind === "mark" && pkt.raw.toString("latin1") === "0000") {
        return { refs, capabilities: capabilities ?? new Set(), read: Buffer.concat(chunks, size) };
      }
      if (pkt.kind !== "data")
        throw proxyError("INVALID_FIELD", { message: "the push is not in git's format" });
      const [line = "", words] = pkt.payload.toString("latin1").replace(/\n$/, "").split("\0");
      if (SHALLOW.test(line)) continue;
      const ref = COMMAND.exec(line)?.[3];
      if (ref === undefined || SUSPECT.test(ref)) {
        throw proxyError("METHOD_NOT_ALLOWED", { message: "the push has a command that is not understood" });
      }
      capabilities ??= new Set((words ?? "").split(" ").filter((word) => word !== ""));
      if (capabilities.has("push-options")) {
        throw proxyError("METHOD_NOT_ALLOWED", { message: "push options are not passed on" });
      }
      refs.push(ref);
    }
    if (size > MAX_LIST_BYTES) throw proxyError("MESSAGE_TOO_LARGE");
  }
  throw proxyError("INVALID_FIELD", { message: "the push is not in git's format" });
}
