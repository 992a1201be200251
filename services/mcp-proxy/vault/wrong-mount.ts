/** The mount that mcp-proxy was given is not a KV version 2 mount, or not the mount at all (cases B124, M16). */
export class WrongMount extends Error {
  override readonly name = "WrongMount";

  constructor(path: string) {
    const mount = path.slice(0, path.indexOf("/data/"));
    super(`${mount}/ is no KV version 2 mount of this Vault: ${path} is not answered as one`);
  }
}
