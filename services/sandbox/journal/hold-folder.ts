import { createHash } from "node:crypto";
import { realpathSync } from "node:fs";
import { createServer, type Server } from "node:net";

/**
 * holdFolder makes sure that one process at a time works in a folder, by listening on an abstract socket named after
 * it; the kernel frees the name when the process dies, however it dies.
 */
export function holdFolder(folder: string): Promise<Server> {
  const digest = createHash("sha256").update(realpathSync(folder)).digest("hex").slice(0, 32);
  const server = createServer((socket) => socket.destroy());
  return new Promise((resolve, reject) => {
    server.once("error", () => reject(new Error(`${folder} is in use by another process`)));
    server.listen({ path: `\0ganglion-sandbox-${digest}` }, () => {
      server.unref();
      resolve(server);
    });
  });
}
