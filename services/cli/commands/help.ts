import { VERSION } from "../../common/version.ts";
import type { Command } from "./command.ts";

/** overview lists all commands. */
export async function overview(commands: readonly Command[]): Promise<string> {
  const lines = commands.map(({ name, usage, summary }) => [`${name} ${usage}`.trim(), summary] as const);
  const width = Math.max(...lines.map(([left]) => left.length));
  return [
    `ganglion ${VERSION}: open, self-hosted managed agents`,
    "",
    ...lines.map(([left, right]) => `  ${left.padEnd(width)}  ${right}`),
    "",
    "Every command takes --state-dir <folder> (default .ganglion), --json and --help.",
  ].join("\n");
}

/** helpOf describes one command. */
export function helpOf(command: Command): string {
  const options = Object.keys(command.options).map((name) => {
    const option = command.options[name] as { type: string; default?: unknown };
    const value = option.type === "string" ? " <value>" : "";
    const preset =
      option.default === undefined || option.default === false ? "" : ` (default ${String(option.default)})`;
    return `  --${name}${value}${preset}`;
  });
  return [
    `ganglion ${command.name} ${command.usage}`.trim(),
    "",
    command.summary,
    ...(command.details ? ["", ...command.details] : []),
    ...(options.length > 0 ? ["", "Options:", ...options] : []),
  ].join("\n");
}
