import { fileURLToPath } from "node:url";

/** SHELL_SCRIPT is the script that bash sources for each command. */
export const SHELL_SCRIPT = fileURLToPath(new URL("./shell.sh", import.meta.url));

/** Environment of every command: nothing of the host, no terminal, no pager, no prompt (case B071). */
export const BASE_ENVIRONMENT: Readonly<Record<string, string>> = {
  PATH: "/opt/ganglion/bin:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin",
  HOME: "/home/hand",
  USER: "hand",
  LOGNAME: "hand",
  SHELL: "/bin/bash",
  LANG: "C.UTF-8",
  TERM: "dumb",
  PAGER: "cat",
  GIT_PAGER: "cat",
  MANPAGER: "cat",
  SYSTEMD_PAGER: "",
  GIT_TERMINAL_PROMPT: "0",
  GIT_EDITOR: "true",
  EDITOR: "true",
  VISUAL: "true",
  DEBIAN_FRONTEND: "noninteractive",
  PYTHONUNBUFFERED: "1",
  TMPDIR: "/tmp",
};

/** Files that a finished shell leaves as `<name>.new`, taken over only when "complete" stands beside them. */
export const STATE_FILES = ["vars", "opts", "cwd"] as const;
