import { mkdirSync } from "node:fs";
import { findAuditFiles, readLogLines, readNamed } from "../audit/audit-files.ts";
import { type AuditRecord, isChange, readAuditLine } from "../audit/audit-record.ts";
import { explainRequest } from "../audit/explain-request.ts";
import { exportLog } from "../audit/export-log.ts";
import { readLiveLines } from "../audit/live-records.ts";
import { mergeLogs } from "../audit/merge-logs.ts";
import { verifyLog } from "../audit/verify-log.ts";
import { connectMesh } from "../client/connect-mesh.ts";
import { CliError, EXIT } from "../terminal/exit-codes.ts";
import { visible } from "../terminal/visible-text.ts";
import type { Command, Invocation } from "./command.ts";
import { findVerb } from "./find-verb.ts";

const DEFAULT_GRACE_S = 900;

/** `ganglion audit` checks the audit log of the credential path offline, and answers questions about it. */
export const audit: Command = {
  name: "audit",
  usage: "<verify|explain|who-used|export|receipt> …",
  summary: "verify the audit log of the credential path offline, and question it",
  details: [
    "verify (--dir <folder> | --log <file>…)   check it against --pub keys.json, --checkpoint, --receipt and",
    "                                          --vault-audit files; no service is asked",
    "explain <request>                         the way of one request: who, rule, credential, where to, outcome",
    "who-used <credential> [--since <time>]    the requests for which a credential was read, or a decoy reached for",
    "export <folder>                           write the running mesh's log, checkpoints and keys there",
    "receipt <session>                         what a session's owner keeps: its end, and a checkpoint over it",
    "",
    "explain and who-used read --dir or --log, or ask the running mesh.",
    "verify ends with 0 when all is well, else with the first of these that was found: 10 the log is gone,",
    "2 a record altered, 3 a gap, reorder or duplicate, 5 the beginning missing, 6 a bad or unknown signature,",
    "7 a fork, 4 shorter than a checkpoint or receipt, 12 somebody looked at a decoy at Vault, 8 Vault's log",
    "says otherwise, 9 a request never ended,",
    "11 nothing outside anchors it (with --strict; else a warning). 64 and 66: the command line, a file.",
  ],
  options: {
    dir: { type: "string" },
    log: { type: "string", multiple: true },
    pub: { type: "string" },
    checkpoint: { type: "string", multiple: true },
    receipt: { type: "string", multiple: true },
    "vault-audit": { type: "string" },
    "vault-mount": { type: "string", default: "ganglion" },
    "grace-s": { type: "string", default: String(DEFAULT_GRACE_S) },
    since: { type: "string" },
    strict: { type: "boolean", default: false },
  },
  arity: [1, 2],
  run: async (invocation) => {
    const [verb = "", ...args] = invocation.positionals;
    const known = findVerb("audit", VERBS, verb);
    if (args.length !== (known.argument ? 1 : 0)) {
      throw new CliError(`usage: ganglion audit ${verb} ${known.argument ?? ""}`.trimEnd(), EXIT.usage);
    }
    return known.act(invocation, args[0] ?? "");
  },
};

const VERBS: Record<
  string,
  { argument?: string; act: (invocation: Invocation, argument: string) => Promise<number> | number }
> = {
  verify: { act: verify },
  explain: { argument: "<request>", act: explain },
  "who-used": { argument: "<credential>", act: whoUsed },
  export: { argument: "<folder>", act: exportTo },
  receipt: { argument: "<session>", act: receipt },
};

function verify({ options, terminal }: Invocation): number {
  const files = filesOf(options);
  const checkpoints = [...files.checkpoints, ...listOf(options.checkpoint)];
  const receipts = listOf(options.receipt);
  const keys = typeof options.pub === "string" ? options.pub : files.keys;
  if (files.logs.length === 0) throw new CliError("--log or --dir names no log", EXIT.usage);
  if (checkpoints.length + receipts.length > 0 && keys === undefined) {
    throw new CliError("checkpoints and receipts are checked with --pub keys.json", EXIT.usage);
  }
  const graceS = Number(options["grace-s"]);
  if (!Number.isInteger(graceS) || graceS < 0)
    throw new CliError("--grace-s is a number of seconds", EXIT.usage);
  const vaultAudit = options["vault-audit"];
  const result = verifyLog({
    logs: files.logs.map(readLogLines),
    ...(keys === undefined ? {} : { keys: readNamed(keys) }),
    checkpoints: checkpoints.map(readNamed),
    receipts: receipts.map(readNamed),
    ...(typeof vaultAudit === "string"
      ? { vaultAudit: { lines: readLogLines(vaultAudit), mount: String(options["vault-mount"]) } }
      : {}),
    graceMs: graceS * 1000,
  });
  const { findings, ...seen } = result;
  for (const finding of findings.list) {
    terminal.object(finding);
    terminal.line(
      `${terminal.style(finding.kind === "no_anchor" ? "yellow" : "red", finding.kind)}: ${visible(finding.text)}`,
    );
  }
  const code = findings.exitCode({ strict: options.strict === true });
  terminal.object({ ...seen, findings: findings.counts(), exit_code: code });
  const uses = seen.honeytokenUses === 0 ? "" : `, ${seen.honeytokenUses} uses of decoys`;
  const reads = seen.vaultReads === undefined ? "" : `, ${seen.vaultReads} reads in Vault's log`;
  terminal.line(
    `${code === 0 ? "sound" : "NOT sound"}: records ${seen.first} to ${seen.last}, ${seen.anchors} checkpoints cover some of them${reads}${uses}`,
  );
  return code;
}

async function explain(invocation: Invocation, requestId: string): Promise<number> {
  const { terminal } = invocation;
  const records = await recordsOf(invocation, (record) => record.request_id === requestId, { requestId });
  if (records.length === 0) throw new CliError(`no record names ${requestId}`, EXIT.noInput);
  for (const record of records) terminal.object(record);
  for (const [name, value] of explainRequest(records)) terminal.pair(name, value);
  return EXIT.ok;
}

async function whoUsed(invocation: Invocation, credentialId: string): Promise<number> {
  const { options, terminal } = invocation;
  const since = typeof options.since === "string" ? Date.parse(options.since) : 0;
  if (Number.isNaN(since))
    throw new CliError("--since is a time, for example 2026-11-30T10:00:00Z", EXIT.usage);
  const wasRead = (record: AuditRecord) =>
    record.kind !== "decision" && !isChange(record) && record.vault_request_id !== "";
  const isUse = (record: AuditRecord) =>
    record.credential_id === credentialId &&
    (wasRead(record) || record.kind === "honeytoken") &&
    Date.parse(record.created_at) >= since;
  const uses = new Map<string, AuditRecord>();
  for (const record of await recordsOf(invocation, isUse, {})) uses.set(record.request_id, record);
  const rows = [["REQUEST", "SESSION", "CALLER", "OPERATION", "TO", "RESULT", "AT"]];
  for (const use of uses.values()) {
    terminal.object(use);
    const { request_id, session_id, caller, operation, destination, reason, created_at } = use;
    rows.push([request_id, session_id, caller, operation, destination, reason || "sent", created_at]);
  }
  terminal.table(rows);
  return EXIT.ok;
}

async function exportTo({ stateDir, terminal }: Invocation, folder: string): Promise<number> {
  const mesh = connectMesh(stateDir);
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    const written = await exportLog(mesh, folder);
    terminal.object(written);
    terminal.line(`wrote ${written.records} records and ${written.checkpoints} checkpoints to ${folder}`);
    return EXIT.ok;
  } finally {
    mesh.close();
  }
}

async function receipt({ stateDir, terminal }: Invocation, sessionId: string): Promise<number> {
  const mesh = connectMesh(stateDir);
  try {
    const { json } = await mesh.audit.getReceipt({ sessionId });
    // A file to keep, either way.
    terminal.object(JSON.parse(json));
    terminal.line(json.trimEnd());
    return EXIT.ok;
  } finally {
    mesh.close();
  }
}

/** The records that matter, from files where some are named, else from the running mesh. */
async function recordsOf(
  { options, stateDir }: Invocation,
  matters: (record: AuditRecord) => boolean,
  filter: { requestId?: string },
): Promise<AuditRecord[]> {
  const records: AuditRecord[] = [];
  const take = (record: AuditRecord | undefined) => {
    if (record && matters(record)) records.push(record);
  };
  const { logs } = filesOf(options);
  if (logs.length > 0) {
    for (const { record } of mergeLogs(logs.map(readLogLines))) take(record);
    return records;
  }
  const mesh = connectMesh(stateDir);
  try {
    for await (const line of readLiveLines(mesh, filter)) take(readAuditLine(line).record);
    return records;
  } finally {
    mesh.close();
  }
}

function filesOf(options: Invocation["options"]) {
  const { dir } = options;
  const found =
    typeof dir === "string" ? findAuditFiles(dir) : { logs: [], checkpoints: [], keys: undefined };
  return { ...found, logs: [...found.logs, ...listOf(options.log)] };
}

function listOf(option: Invocation["options"][string]): string[] {
  return Array.isArray(option) ? option : [];
}
