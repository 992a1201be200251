import type { TLSSocket } from "node:tls";

const FORM = /^GANGLION\/1 ([\x21-\x7e]{1,128})$/;
const MAX_BYTES = 160;
const WAIT_MS = 10_000;

/**
 * Reads the one line that comes before a hand's bytes and answers the token in it; undefined when it is no such line, or
 * does not come in time. What follows the line stays to be read.
 */
export function readPreamble(socket: TLSSocket): Promise<string | undefined> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => done(undefined), WAIT_MS);
    const done = (token: string | undefined) => {
      clearTimeout(timer);
      socket.off("readable", onReadable).off("close", onClose).off("end", onClose);
      resolve(token);
    };
    const onClose = () => done(undefined);
    let line = Buffer.alloc(0);
    const onReadable = () => {
      for (let chunk = socket.read(); chunk !== null; chunk = socket.read()) {
        line = Buffer.concat([line, chunk as Buffer]);
        const end = line.indexOf("\r\n");
        if (end !== -1) {
          const rest = line.subarray(end + 2);
          if (rest.length > 0) socket.unshift(rest);
          return done(FORM.exec(line.toString("latin1", 0, end))?.[1]);
        }
        if (line.length > MAX_BYTES) return done(undefined);
      }
    };
    socket.on("readable", onReadable).once("close", onClose).once("end", onClose);
    onReadable();
  });
}
