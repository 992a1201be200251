// `make demo`: one machine, one session, a killed brain, a killed hand, and a search for two planted credentials.
// Ends with 0 only if everything it claims is so.
import { startMcpUpstream } from "../kit/mcp-upstream.ts";
import { startScriptedModel } from "../kit/scripted-model.ts";
import { checkSession } from "./check-session.ts";
import { startDemoMesh } from "./demo-mesh.ts";
import { highlight, narrate } from "./narrate.ts";
import { proveSecrecy, type SecrecyProof } from "./prove-secrecy.ts";
import { runSession } from "./run-session.ts";

const print = (line = ""): void => void process.stdout.write(`${line}\n`);
const heading = (text: string): void => print(`\n${highlight("bold", text)}`);
const verdict = (holds: boolean): string => (holds ? highlight("green", "✔") : highlight("red", "✘"));
/** What comes after the last dash of a made-up credential: the rest is the same in all of them. */
const randomPart = (secret: string): string => secret.slice(secret.lastIndexOf("-") + 1);
const mib = (bytes: number): string => `${Math.round(bytes / 2 ** 20)} MiB`;

heading("1  Start");
print(
  "The model in this demo is scripted: a stand-in that speaks the Messages API. Everything else is real.",
);
const upstream = await startMcpUpstream();
const model = await startScriptedModel();
const mesh = await startDemoMesh({ mcpUrl: upstream.url, modelUrl: model.url }, (line) =>
  print(`   ${line}`),
);
let failed = 0;
try {
  const vault = JSON.parse(await mesh.cli(["vault", "create", "demo", "--json"])) as { id: string };
  await mesh.cli(["vault", "put", vault.id, "--mcp-url", upstream.url], upstream.token);
  await mesh.cli(["vault", "model-key", "--url", model.url], model.apiKey);
  print("   two credentials are planted, sealed: the model's key and a token for an MCP server");

  heading("2  One session; its log as it is written");
  const run = await runSession(mesh, {
    mcpUrl: upstream.url,
    vaultId: vault.id,
    show: (event) => print(narrate(event)),
    say: (line) => print(highlight("red", `     ⚡ ${line}`)),
  });
  const calls = (await upstream.journal.entries()).filter(({ kind }) => kind === "call").length;
  const facts = checkSession(run, calls);

  heading("3  The answer");
  print(facts.answer);

  heading("4  What was promised");
  for (const { claim, holds } of facts.claims) print(`   ${verdict(holds)} ${claim}`);
  failed += facts.claims.filter(({ holds }) => !holds).length;
  print(`   events ${run.events.length} · brains ${facts.brains.length} · hands ${facts.hands.length}`);
  print(
    `   first token after ${Math.round(run.firstTokenMs)} ms · whole turn ${(run.totalMs / 1000).toFixed(1)} s`,
  );

  heading("5  Where the credentials are");
  const proof = proveSecrecy({
    secrets: [
      { name: "MCP token", secret: randomPart(upstream.token) },
      { name: "model key", secret: randomPart(model.apiKey) },
    ],
    pids: {
      ...mesh.pids(),
      "mcp-upstream": upstream.process.pid as number,
      "scripted-model": model.process.pid as number,
    },
    mayHold: new Set(["mcp-proxy-1", "vault", "scripted-model", "mcp-upstream"]),
    heapControl: { text: run.sessionId, names: ["session-1", "gateway-1", "mcp-proxy-1"] },
    state: mesh.state,
    filesMayHold: [],
  });
  showProof(proof);
  if (!proof.holds) failed += 1;
} finally {
  await mesh.down();
  await upstream.stop();
  await model.stop();
}
print();
print(
  failed === 0 ? highlight("green", "All of it holds.") : highlight("red", `${failed} claims do not hold.`),
);
process.exit(failed === 0 ? 0 : 1);

function showProof({ processes, hidden, hiddenFolders, files, unseen }: SecrecyProof): void {
  print("   every process was stopped while memory, environment, arguments and open files were read");
  for (const { name, pid, mayHold, memoryBytes, findings, controlFound } of processes) {
    const where = [...new Set(findings.map(({ needle, surface }) => `${needle} in ${surface}`))].join(", ");
    const holds = controlFound && (mayHold || findings.length === 0);
    const control = controlFound ? "control found" : "CONTROL NOT FOUND";
    const found = where || "nothing";
    print(
      `   ${verdict(holds)} ${name.padEnd(16)} ${String(pid).padStart(7)} ${mib(memoryBytes).padStart(9)}  ${control}  ${found}`,
    );
    if (!holds) for (const { form, place } of findings) print(`       ${form} at ${place}`);
  }
  if (hidden.length > 0) {
    const what = `${hidden.length} processes and ${hiddenFolders.length} folders of hands`;
    print(`   ! ${what} are hidden from an ordinary user and were not read; as root they are`);
  }
  print(`   ${verdict(files.findings.length === 0)} ${files.scanned} files, ${mib(files.bytes)}`);
  for (const { needle, form, place } of files.findings) print(`       ${needle}, ${form}: ${place}`);
  for (const name of unseen)
    print(`   ${verdict(false)} ${name} was found nowhere, so the search proves nothing`);
}
