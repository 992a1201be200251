import { ChainCheck } from "./check-chain.ts";
import { type NamedText, openCheckpoints } from "./check-checkpoints.ts";
import { ReceiptCheck } from "./check-receipts.ts";
import { RequestCheck } from "./check-requests.ts";
import { VaultAuditCheck } from "./check-vault-audit.ts";
import { Findings } from "./finding.ts";
import { mergeLogs } from "./merge-logs.ts";
import { KeysInvalid, type PublicKeys, readPublicKeys } from "./public-keys.ts";
import type { Checkpoint } from "./signed-note.ts";

/** What a verification is given. Everything comes from files: no service is asked. */
export interface VerifyInput {
  /** Lines of each log file. */
  readonly logs: readonly Iterable<string>[];
  /** keys.json; needed where there are checkpoints or receipts. */
  readonly keys?: NamedText;
  readonly checkpoints: readonly NamedText[];
  readonly receipts: readonly NamedText[];
  /** Lines of Vault's audit file, and the mount whose reads count. */
  readonly vaultAudit?: { readonly lines: Iterable<string>; readonly mount: string };
  /** How long a request may take from its decision to its end. */
  readonly graceMs: number;
}

/** What a verification found. */
export interface VerifyResult {
  readonly findings: Findings;
  readonly logId: string | undefined;
  readonly records: bigint;
  readonly first: bigint;
  readonly last: bigint;
  /** Checkpoints that a record of the log was compared with. */
  readonly anchors: number;
  /** Times that somebody reached for a decoy through mcp-proxy. */
  readonly honeytokenUses: number;
  /** Reads of credentials in Vault's log; absent when none was given. */
  readonly vaultReads?: number;
}

/** Verifies an audit log by docs/AUDIT_FORMAT.md, in one pass over its lines. */
export function verifyLog(input: VerifyInput): VerifyResult {
  const findings = new Findings();
  const keys = input.keys && openKeys(input.keys, findings);
  const checkpoints: Map<bigint, Checkpoint> = keys
    ? openCheckpoints(input.checkpoints, keys, findings)
    : new Map();
  const receipts = keys && new ReceiptCheck(input.receipts, keys, checkpoints, findings);
  const chain = new ChainCheck(findings, { logId: keys?.logId, checkpoints });
  const requests = new RequestCheck(findings, input.graceMs, () => chain.isFromStart());
  const { vaultAudit } = input;
  const vault = vaultAudit && new VaultAuditCheck(vaultAudit.lines, vaultAudit.mount, findings);
  let honeytokenUses = 0;
  for (const line of mergeLogs(input.logs)) {
    chain.add(line);
    // What an altered line says proves nothing, not even that its request ended.
    if (!line.record || line.fault) continue;
    if (line.record.kind === "honeytoken" && line.record.reason === "used") honeytokenUses += 1;
    requests.add(line.record);
    receipts?.add(line.record);
    vault?.add(line.record);
  }
  const { records, first, last, anchors, logId } = chain.end();
  requests.end();
  receipts?.end(first);
  const reads = vault?.end().reads;
  return {
    findings,
    logId,
    records,
    first,
    last,
    anchors,
    honeytokenUses,
    ...(reads === undefined ? {} : { vaultReads: reads }),
  };
}

function openKeys({ name, text }: NamedText, findings: Findings): PublicKeys | undefined {
  try {
    return readPublicKeys(text);
  } catch (error) {
    if (!(error instanceof KeysInvalid)) throw error;
    findings.add("signature", `${name}: ${error.message}`);
    return undefined;
  }
}
