import { closeSync, readSync } from "node:fs";

/** What a supervisor hands to a process that needs a login. Absent parts are not needed. */
export interface Bootstrap {
  vault?: { addr: string; ca_pem?: string; role_id: string; wrapped_secret_id: string; mount: string };
  /** ca_pem when the server's authority is not the mesh's. */
  postgres?: { user: string; password: string; ca_pem?: string };
}

const MAX_BYTES = 1 << 20;

/**
 * Reads the bootstrap document from a descriptor to its end, once, and closes it: afterwards
 * nothing that runs in this process later can read it again. Errors never quote what was read.
 */
export function readBootstrap(fd: number): Bootstrap {
  const chunks: Buffer[] = [];
  let size = 0;
  try {
    for (;;) {
      const chunk = Buffer.alloc(65_536);
      const read = readChunk(fd, chunk);
      if (read === 0) break;
      size += read;
      if (size > MAX_BYTES) throw new Error("bootstrap document is too large");
      chunks.push(chunk.subarray(0, read));
    }
  } finally {
    closeSync(fd);
  }
  const document = Buffer.concat(chunks, size);
  try {
    const parsed: unknown = JSON.parse(document.toString("utf8"));
    if (typeof parsed !== "object" || parsed === null || Array.isArray(parsed)) throw new Error();
    return parsed as Bootstrap;
  } catch {
    // JSON.parse quotes its input in its message.
    throw new Error("bootstrap document is not a JSON object");
  } finally {
    document.fill(0);
    for (const chunk of chunks) chunk.fill(0);
  }
}

function readChunk(fd: number, into: Buffer): number {
  for (;;) {
    try {
      return readSync(fd, into);
    } catch (error) {
      const code = (error as NodeJS.ErrnoException).code;
      if (code === "EOF") return 0;
      // The writer has not written yet and the descriptor does not block.
      if (code !== "EAGAIN") throw new Error(`bootstrap document cannot be read (${code ?? "unknown"})`);
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5);
    }
  }
}
