#!/usr/bin/env node
import { enableCompileCache } from "node:module";
import { join } from "node:path";

// Whoever reads our output may have seen enough (`ganglion sessions | head -1`): that is no failure.
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code === "EPIPE") process.exit(0);
  throw error;
});
// Halves the time until the first line. In a folder of the user's own: whoever can write there decides what is run.
if (process.env.HOME) enableCompileCache(join(process.env.HOME, ".cache", "ganglion"));
const { runCommand } = await import("./commands/run-command.ts");
process.exitCode = await runCommand(process.argv.slice(2));
