import { type ChildProcess, spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { CALL_MARK } from "./process-table.ts";
import { BASE_ENVIRONMENT, SHELL_SCRIPT } from "./shell-script.ts";

/**
 * WaitingShell is a bash that has loaded the shell's state and waits for its one command: starting it takes longer
 * than most commands do, so it is started ahead.
 */
export class WaitingShell {
  readonly child: ChildProcess;
  /** Marks every process of the call. */
  readonly mark: string;

  constructor(options: {
    workspace: string;
    stateFolder: string;
    environment: Readonly<Record<string, string>>;
  }) {
    this.mark = nextMark();
    const environment = { ...options.environment, ...BASE_ENVIRONMENT };
    this.child = spawn(
      "/bin/bash",
      [
        ...["--noprofile", "--norc", "-c", '. "$2"', "bash"],
        ...[options.stateFolder, SHELL_SCRIPT, Object.keys(environment).join(" ")],
      ],
      // Its own session: no terminal, and one name for the whole process group.
      {
        cwd: existsSync(options.workspace) ? options.workspace : "/",
        detached: true,
        env: { ...environment, [CALL_MARK]: this.mark },
        stdio: ["pipe", "pipe", "pipe"],
      },
    );
    this.child.stdin!.on("error", () => undefined);
    // Whoever runs a command listens as well; without any listener the error would be thrown.
    this.child.on("error", () => undefined);
  }

  get pid(): number | undefined {
    return this.child.pid;
  }

  get isDead(): boolean {
    return this.child.pid === undefined || this.child.exitCode !== null || this.child.signalCode !== null;
  }

  /** begin gives the shell its command. */
  begin(commandFile: string): void {
    this.child.stdin!.end(`${commandFile}\n`);
  }

  /** dismiss ends a shell that got no command. */
  dismiss(): void {
    this.child.stdin!.end();
  }
}

let marks = 0;

/** Not a secret: it only has to differ from call to call. */
function nextMark(): string {
  marks += 1;
  return `${process.pid}-${process.hrtime.bigint().toString(36)}-${marks}`;
}
