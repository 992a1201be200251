import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const README = readFileSync(join(ROOT, "README.md"), "utf8");
const BLOCKS = [...README.matchAll(/^```sh\n([\s\S]*?)^```$/gm)].map(([, block]) => block as string);
/** Run by a test of its own, and by whoever runs this one. */
const ELSEWHERE = new Set(["make demo", "make test"]);
const WATCH = /WatchEvents/;
const MODEL_KEY = /vault model-key/;

/** What must be printed for a command to have done what the text around it says. */
const PRINTS: readonly (readonly [RegExp, RegExp])[] = [
  [/^make up/, /the mesh is up[\s\S]*scripted/],
  [MODEL_KEY, /stored the key/],
  [/ run "/, /scripted[\s\S]*Linux/],
  [/ sessions/, /sesn_/],
  [/ doctor/, /mcp-proxy-1/],
  [/ vault list/, /vlt_/],
  [/ mcp pins/, /SEEN INSTEAD/],
  [/ policy lint/, /^valid; /],
  [/ policy explain/, /^allowed by default\.mcp/],
  [/ audit export/, /wrote [1-9]\d* records/],
  [/ audit verify/, /^sound: records 1 to /m],
  [/--list-services/, /ganglion\.session\.v1\.SessionService/],
  [/--list-methods/, /ganglion\.session\.v1\.SessionService\/CreateSession/],
  [/CreateEnvironment/, /"id": ?"env_/],
  [WATCH, /ganglionSessionCreated/],
  [/Health\/Check/, /"status": ?"SERVING"/],
];

describe("the README", function () {
  this.timeout(180_000);
  let folder: string;

  before(() => {
    folder = mkdtempSync(join(tmpdir(), "ganglion-readme-"));
    writeFileSync(join(folder, "key.txt"), "sk-not-a-key\n");
  });
  after(async () => {
    await run(here("make down"));
    rmSync(folder, { recursive: true, force: true });
  });

  /** The same command with a state folder and ports of its own: another mesh may be up in this checkout. */
  const here = (command: string): string =>
    command
      .replace(/^make up$/, `make up ARGS="--state-dir ${folder} --rest-port 0 --grpc-port 0"`)
      .replace(/^make down$/, `make down ARGS="--state-dir ${folder}"`)
      .replace(/^(services\/cli\/ganglion [^<\n]*?)( <.*)?$/, `$1 --state-dir ${folder}$2`)
      .replace(/^(SESSION=\$\(services\/cli\/ganglion sessions)/, `$1 --state-dir ${folder}`)
      .replaceAll(".ganglion/", `${folder}/`)
      .replaceAll("key.txt", `${folder}/key.txt`);

  /** Runs a command line; with `until` it is stopped as soon as that was printed. */
  const run = async (command: string, until?: RegExp): Promise<{ code: number | null; printed: string }> => {
    const child = spawn("sh", ["-c", command], {
      cwd: ROOT,
      detached: true,
      stdio: ["ignore", "pipe", "pipe"],
      env: {
        PATH: `${dirname(process.execPath)}:${process.env.PATH}`,
        HOME: process.env.HOME ?? folder,
      },
    });
    let printed = "";
    const take = (chunk: Buffer) => {
      printed += chunk;
      if (until?.test(printed)) process.kill(-(child.pid as number), "SIGTERM");
    };
    child.stdout.on("data", take);
    child.stderr.on("data", take);
    const code = await new Promise<number | null>((resolve) => child.once("close", resolve));
    return { code, printed };
  };

  const check = async (command: string, prelude: readonly string[] = []): Promise<void> => {
    const [, wanted] = PRINTS.find(([fits]) => fits.test(command)) ?? [];
    assert.ok(wanted, `nothing is known of: ${command}`);
    const line = [...prelude, command].map(here).join("\n");
    const isWatch = WATCH.test(command);
    const { code, printed } = await run(line, isWatch ? wanted : undefined);
    assert.match(printed, wanted, command);
    if (!isWatch) assert.equal(code, 0, `${command}\n${printed}`);
  };

  const late: string[] = [];
  for (const block of BLOCKS) {
    const prelude: string[] = [];
    for (const command of commandsOf(block)) {
      if (ELSEWHERE.has(command)) continue;
      if (isPrelude(command)) prelude.push(command);
      // From then on the real model is asked, which no test has.
      else if (MODEL_KEY.test(command)) late.push(command);
      else it(`means what it says: ${command.split("\n")[0]}`, () => check(command, [...prelude]));
    }
  }
  for (const command of late) it(`means what it says: ${command}`, () => check(command));

  it("names every way in", () => {
    const commands = BLOCKS.flatMap(commandsOf);
    for (const command of ELSEWHERE) assert.ok(commands.includes(command), command);
    for (const [fits] of PRINTS)
      assert.ok(
        commands.some((command) => fits.test(command)),
        String(fits),
      );
  });
});

/** The commands of a block: comments and blank lines separate, a backslash goes on. */
function commandsOf(block: string): string[] {
  const lines = block.replaceAll(/\\\n\s*/g, " ").split("\n");
  return lines.map((line) => line.trim()).filter((line) => line !== "" && !line.startsWith("#"));
}

/** What a shell remembers for the commands after it. */
function isPrelude(command: string): boolean {
  return command.startsWith(". ") || /^\w+(\(\) \{|=)/.test(command);
}
