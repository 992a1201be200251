/** What is done to the process at its point: killed, or all its connections broken. */
export type CrashAction = "kill" | "cut";

/** What a test tells a process. */
export type ToArmed =
  | { readonly ask: "arm"; readonly point: string; readonly action: CrashAction }
  | { readonly ask: "disarm" }
  /** The points it came by since the last such question. */
  | { readonly ask: "seen" };

/** What a process answers. One that is killed says nothing. */
export type FromArmed =
  | { readonly told: "armed" }
  | { readonly told: "disarmed" }
  | { readonly told: "hit"; readonly point: string }
  | { readonly told: "seen"; readonly points: string[] };
