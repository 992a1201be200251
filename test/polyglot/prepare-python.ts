import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** How to run a Python program that imports the generated stubs. */
export interface PythonClient {
  readonly command: string;
  /** Value of PYTHONPATH: the stubs, and the libraries when they are not the system's. */
  readonly path: string;
}

/** Debian's own interpreter: the packages below belong to it, not to whatever `python3` is first on PATH. */
const PYTHON = existsSync("/usr/bin/python3") ? "/usr/bin/python3" : "python3";
const DEBIAN = ["protobuf-compiler", "protobuf-compiler-grpc", "python3-grpcio", "python3-protobuf"];

const works = (command: string, args: string[], env = process.env): boolean =>
  spawnSync(command, args, { stdio: "ignore", env }).status === 0;

const hasDebianTools = (): boolean =>
  works("sh", ["-c", "command -v protoc && command -v grpc_python_plugin"]) &&
  works(PYTHON, ["-c", "import grpc"]);

/** Installs the libraries from PyPI below the checkout, once; false where pip or PyPI is not to be had. */
function installFromPypi(root: string): string | undefined {
  const libraries = join(root, "node_modules", ".cache", "ganglion-python");
  const env = { ...process.env, PYTHONPATH: libraries };
  if (works(PYTHON, ["-c", "import grpc, grpc_tools"], env)) return libraries;
  mkdirSync(libraries, { recursive: true });
  const wanted = ["grpcio", "grpcio-tools", "protobuf"];
  if (!works(PYTHON, ["-m", "pip", "install", "--quiet", "--target", libraries, ...wanted])) return undefined;
  return works(PYTHON, ["-c", "import grpc, grpc_tools"], env) ? libraries : undefined;
}

/**
 * Generates Python stubs from proto/ with `buf generate` and says how to run a client on them.
 * Takes Debian's generator where it is installed, else PyPI's, else installs Debian's as root.
 */
export function preparePython(root: string): PythonClient {
  const stubs = mkdtempSync(join(tmpdir(), "ganglion-python-"));
  const generate = (template: string, env = process.env): void => {
    const args = [
      "generate",
      "--template",
      `test/polyglot/${template}`,
      "--path",
      "proto/ganglion",
      "-o",
      stubs,
    ];
    execFileSync(join(root, "node_modules", ".bin", "buf"), args, { cwd: root, stdio: "pipe", env });
  };
  if (!hasDebianTools()) {
    const libraries = installFromPypi(root);
    if (libraries !== undefined) {
      generate("buf.gen.python-pypi.yaml", { ...process.env, PYTHONPATH: libraries });
      return { command: PYTHON, path: `${stubs}:${libraries}` };
    }
    if (process.getuid?.() !== 0) {
      throw new Error(`the Python client needs pip with PyPI, or: sudo apt-get install ${DEBIAN.join(" ")}`);
    }
    execFileSync("apt-get", ["update", "-q"], { stdio: "pipe" });
    execFileSync("apt-get", ["install", "-y", "-q", "--no-install-recommends", ...DEBIAN], { stdio: "pipe" });
  }
  generate("buf.gen.python.yaml");
  return { command: PYTHON, path: stubs };
}
