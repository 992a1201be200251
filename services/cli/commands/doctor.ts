import { examine } from "../doctor/examine.ts";
import type { Finding } from "../doctor/finding.ts";
import { EXIT } from "../terminal/exit-codes.ts";
import type { Terminal } from "../terminal/terminal.ts";
import type { Command } from "./command.ts";

/** `ganglion doctor` looks at every part and says which one is ill, and why. */
export const doctor: Command = {
  name: "doctor",
  usage: "",
  summary: "look at every part and say which one is ill, and why",
  options: {},
  arity: [0, 0],
  run: async ({ stateDir, terminal }) => {
    const progress = terminal.progress();
    progress.set("looking at every part");
    const findings = await examine(stateDir);
    progress.clear();
    for (const finding of findings) {
      terminal.object(finding);
      show(terminal, finding);
    }
    const ill = findings.filter(({ state }) => state === "ill");
    terminal.object({ healthy: ill.length === 0 });
    terminal.line("");
    terminal.line(
      ill.length === 0
        ? terminal.style("green", "healthy")
        : terminal.style("red", `ill: ${[...new Set(ill.map(({ part }) => part))].join(", ")}`),
    );
    return ill.length === 0 ? EXIT.ok : EXIT.failed;
  },
};

const SIGNS = { well: ["green", "✓"], weak: ["yellow", "!"], ill: ["red", "✗"] } as const;

function show(terminal: Terminal, { part, state, detail, remedy }: Finding): void {
  const [colour, sign] = SIGNS[state];
  terminal.line(`${terminal.style(colour, sign)} ${part.padEnd(14)} ${detail}`);
  if (remedy) terminal.line(`  ${" ".repeat(14)} ${terminal.style("dim", `→ ${remedy}`)}`);
}
