import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { compileCache } from "./compile-cache.ts";
import type { ProcessSpec } from "./managed-process.ts";
import { baseEnvironment, nodeProgram } from "./service-specs.ts";
import type { SystemUser } from "./system-user.ts";

/** ScriptedModel is a stand-in that speaks the Messages API. It comes with the tests, not with the product. */
export class ScriptedModel {
  readonly name = "scripted-model";
  readonly url: string;
  /** Made anew at each start; it goes to the stand-in on a descriptor and, sealed, into the vault. */
  readonly apiKey = randomBytes(32).toString("base64url");
  readonly #options: ScriptedModelOptions;
  readonly #program: string;

  private constructor(options: ScriptedModelOptions, program: string) {
    this.#options = options;
    this.#program = program;
    this.url = `http://127.0.0.1:${options.port}`;
  }

  /** Finds the stand-in in the checkout; undefined where there is none. */
  static find(options: ScriptedModelOptions): ScriptedModel | undefined {
    const program = join(options.checkout, "test", "fakes", "scripted-model", "main.ts");
    return existsSync(program) ? new ScriptedModel(options, program) : undefined;
  }

  /** How to run it. */
  spec(): ProcessSpec {
    const { checkout, state, port, user, logFile } = this.#options;
    return {
      name: this.name,
      command: [nodeProgram(checkout), this.#program],
      cwd: checkout,
      env: {
        ...baseEnvironment(),
        ...compileCache(state, user),
        GANGLION_LISTEN: `127.0.0.1:${port}`,
        GANGLION_BOOTSTRAP_FD: "3",
      },
      ...(user ? { user } : {}),
      logFile,
      bootstrap: async () => JSON.stringify({ api_key: this.apiKey }),
      isReady: () => accepts(port),
    };
  }
}

interface ScriptedModelOptions {
  readonly checkout: string;
  readonly state: string;
  readonly port: number;
  readonly user: SystemUser | undefined;
  readonly logFile: string;
}

function accepts(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1");
    socket.once("connect", () => {
      socket.destroy();
      resolve(true);
    });
    socket.once("error", () => resolve(false));
  });
}
