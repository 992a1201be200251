/** parseLoopback reads host:port and refuses every host that is not this machine's loopback. */
export function parseLoopback(listen: string): { host: string; port: number } {
  const at = listen.lastIndexOf(":");
  const host = listen.slice(0, at).replace(/^\[|\]$/g, "");
  const isLoopback = host === "::1" || /^127(\.\d{1,3}){3}$/.test(host);
  // A name is refused too, "localhost" included: what it stands for is decided elsewhere.
  if (!isLoopback) {
    throw new Error(`the development vault listens on loopback addresses only, not on "${host}"`);
  }
  return { host, port: Number(listen.slice(at + 1)) };
}
