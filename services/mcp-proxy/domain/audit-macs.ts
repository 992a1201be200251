import { createHash, createHmac } from "node:crypto";

/** The MAC of one body, made while the body passes. */
export interface BodyMac {
  update(bytes: Buffer | string): void;
  /** Hexadecimal; to be asked once. */
  digest(): string;
}

/**
 * HMACs that the audit log holds, with keys that the database does not have: whoever has only the log cannot try out what a
 * body or an accessor was, and whoever has the key can show that it was this one.
 */
export interface AuditMacs {
  /** 8 hexadecimal digits; names the key that both others follow from. */
  readonly keyId: string;
  body(): BodyMac;
  /** Of the accessor of a Vault token; hexadecimal. */
  accessor(accessor: string): string;
}

/** Makes them for a key of 32 bytes. Each use has a key of its own, so that one HMAC says nothing of the other. */
export function createAuditMacs(key: Buffer): AuditMacs {
  if (key.length !== 32) throw new Error("the audit HMAC key must have 32 bytes");
  const derived = (label: string) => createHmac("sha256", key).update(label).digest();
  const bodyKey = derived("ganglion audit body v1");
  const accessorKey = derived("ganglion audit vault token accessor v1");
  return {
    keyId: createHash("sha256").update("ganglion audit hmac key v1\0").update(key).digest("hex").slice(0, 8),
    body: () => {
      const mac = createHmac("sha256", bodyKey);
      return { update: (bytes) => void mac.update(bytes), digest: () => mac.digest("hex") };
    },
    accessor: (accessor) => createHmac("sha256", accessorKey).update(accessor).digest("hex"),
  };
}
