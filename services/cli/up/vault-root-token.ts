import { type VaultHttp, VaultRefusal } from "./vault-http.ts";

/** generateRootToken makes a root token from the unseal key, as `vault operator generate-root` does. */
export async function generateRootToken(http: Pick<VaultHttp, "call">, unsealKey: string): Promise<string> {
  try {
    // An attempt that was left behind would be in the way.
    await http.call("DELETE", "sys/generate-root/attempt");
    const begun = (await http.call("PUT", "sys/generate-root/attempt", { body: {} })).body;
    const done = (
      await http.call("PUT", "sys/generate-root/update", { body: { key: unsealKey, nonce: begun.nonce } })
    ).body;
    const encoded = Buffer.from(String(done.encoded_token ?? done.encoded_root_token), "base64");
    const otp = Buffer.from(String(begun.otp));
    return Buffer.from(encoded.map((byte, index) => byte ^ (otp[index] as number))).toString("utf8");
  } catch (cause) {
    // OpenBao has this endpoint turned off.
    if (!(cause instanceof VaultRefusal) || cause.status !== 405) throw cause;
    throw new Error(
      "the supervisor's Vault token is no longer valid and this server makes no root tokens: give a token with" +
        " the right to write policies (VAULT_TOKEN), or start with a new state folder",
    );
  }
}
