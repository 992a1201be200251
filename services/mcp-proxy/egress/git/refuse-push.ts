import type { ServerResponse } from "node:http";
import { writePkts } from "./pkt-line.ts";
import type { PushCommands } from "./receive-commands.ts";

const FLUSH = Buffer.from("0000");
/** A pack that nobody wants is read away up to here, so that git gets to reading the answer. */
const MAX_DRAIN_BYTES = 256 << 20;

/**
 * Answers a push as a git server does that refuses refs (report-status): all of them, since what was sent belongs
 * together. git prints the reason beside each ref.
 */
export async function refusePush(
  response: ServerResponse,
  { refs, capabilities }: PushCommands,
  refused: ReadonlySet<string>,
): Promise<void> {
  const { req: request } = response;
  let drained = 0;
  try {
    for await (const chunk of request.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
      drained += chunk.length;
      if (drained > MAX_DRAIN_BYTES) break;
    }
  } catch {
    // It has gone away.
  }
  const lines = refs.map((ref) => {
    const why = refused.has(ref)
      ? "REF_NOT_ALLOWED: the session may not push to this ref"
      : "another ref of this push was refused";
    return writePkts(Buffer.from(`ng ${ref} ${why}\n`, "latin1"));
  });
  const report = Buffer.concat([writePkts(Buffer.from("unpack ok\n")), ...lines, FLUSH]);
  const isBanded = capabilities.has("side-band-64k") || capabilities.has("side-band");
  const body = isBanded ? Buffer.concat([writePkts(report, 1), FLUSH]) : report;
  response
    .writeHead(200, {
      "content-type": "application/x-git-receive-pack-result",
      "cache-control": "no-cache",
      "content-length": body.length,
      "ganglion-reason": "REF_NOT_ALLOWED",
      ...(request.complete ? {} : { connection: "close" }),
    })
    .end(body);
}
