import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import type { IncomingMessage, RequestListener, ServerResponse } from "node:http";
import { createServer, type Server } from "node:https";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { issueCertificate } from "../../../services/common/tls/issue-certificate.ts";
import type { TestCa } from "../../kit/ca.ts";

/** A request as the git server saw it. */
export interface SeenGit {
  method: string;
  url: string;
  authorization: string | undefined;
  protocol: string | undefined;
  encoding: string | undefined;
  accept: string | undefined;
}

/** A real git server over https on localhost, behind `git http-backend`, that wants a token. */
export class GitUpstream {
  readonly root: string;
  readonly seen: SeenGit[] = [];
  /** The token that it takes; undefined = it takes everybody. */
  token: string | undefined;
  /** Answers in its place; undefined = git does. */
  listener: RequestListener | undefined;
  connections = 0;
  port = 0;
  #server: Server | undefined;

  private constructor(root: string) {
    this.root = root;
  }

  static async start(ca: TestCa): Promise<GitUpstream> {
    const upstream = new GitUpstream(mkdtempSync(join(tmpdir(), "ganglion-git-")));
    const leaf = await issueCertificate(ca.authority, { service: "vault", instance: "git" });
    const server = createServer({ cert: leaf.certPem, key: leaf.keyPem }, (request, response) =>
      upstream.#serve(request, response),
    );
    server.on("connection", () => {
      upstream.connections += 1;
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    upstream.#server = server;
    upstream.port = (server.address() as AddressInfo).port;
    return upstream;
  }

  /** Makes a repository with one commit on main. */
  make(name: string, files: Record<string, string> = { "README.md": "hello\n" }): void {
    const bare = join(this.root, `${name}.git`);
    const work = mkdtempSync(join(tmpdir(), "ganglion-git-work-"));
    mkdirSync(bare, { recursive: true });
    const git = (...args: string[]) => execFileSync("git", args, { cwd: work, env: GIT_ENV, stdio: "pipe" });
    git("init", "-q", "--bare", "-b", "main", bare);
    git("-C", bare, "config", "http.receivepack", "true");
    git("-C", bare, "config", "receive.advertisePushOptions", "true");
    git("init", "-q", "-b", "main", work);
    for (const [path, text] of Object.entries(files)) writeFileSync(join(work, path), text);
    git("add", ".");
    git("commit", "-q", "-m", "first");
    git("push", "-q", bare, "main");
    rmSync(work, { recursive: true, force: true });
  }

  /** What git in a repository of the server says. */
  git(name: string, ...args: string[]): string {
    const cwd = join(this.root, `${name}.git`);
    return execFileSync("git", args, { cwd, env: GIT_ENV, encoding: "utf8" }).trim();
  }

  /** Makes the repository run a script at each push. */
  hook(name: string, script: string): void {
    const path = join(this.root, `${name}.git`, "hooks", "pre-receive");
    mkdirSync(join(this.root, `${name}.git`, "hooks"), { recursive: true });
    writeFileSync(path, `#!/bin/sh\n${script}\n`, { mode: 0o755 });
  }

  stop(): void {
    this.#server?.close();
    this.#server?.closeAllConnections();
    rmSync(this.root, { recursive: true, force: true });
  }

  #serve(request: IncomingMessage, response: ServerResponse): void {
    const { headers, method = "", url = "" } = request;
    const header = (name: string) => headers[name] as string | undefined;
    this.seen.push({
      method,
      url,
      authorization: headers.authorization,
      protocol: header("git-protocol"),
      encoding: headers["content-encoding"],
      accept: headers["accept-encoding"] as string | undefined,
    });
    if (this.listener) {
      this.listener(request, response);
      return;
    }
    const wanted = `Basic ${Buffer.from(`x-access-token:${this.token}`).toString("base64")}`;
    if (this.token !== undefined && headers.authorization !== wanted) {
      response
        .writeHead(401, { "www-authenticate": 'Basic realm="git"' })
        .end(`no: ${headers.authorization}`);
      return;
    }
    const [path, query = ""] = url.split("?");
    const backend = spawn("git", ["http-backend"], {
      env: {
        ...GIT_ENV,
        GIT_PROJECT_ROOT: this.root,
        GIT_HTTP_EXPORT_ALL: "1",
        REQUEST_METHOD: method,
        PATH_INFO: path,
        QUERY_STRING: query,
        CONTENT_TYPE: headers["content-type"] ?? "",
        REMOTE_USER: "x",
        REMOTE_ADDR: "127.0.0.1",
        ...(headers["content-length"] ? { CONTENT_LENGTH: headers["content-length"] } : {}),
        ...(headers["content-encoding"] ? { HTTP_CONTENT_ENCODING: headers["content-encoding"] } : {}),
        ...(header("git-protocol") ? { GIT_PROTOCOL: header("git-protocol") } : {}),
      },
      stdio: ["pipe", "pipe", "ignore"],
    });
    backend.stdin.on("error", () => {});
    request.pipe(backend.stdin);
    let head: Buffer | undefined = Buffer.alloc(0);
    backend.stdout.on("data", (chunk: Buffer) => {
      if (head === undefined) return void response.write(chunk);
      head = Buffer.concat([head, chunk]);
      const end = head.indexOf("\r\n\r\n");
      if (end === -1) return;
      for (const line of head.toString("latin1", 0, end).split("\r\n")) {
        const colon = line.indexOf(":");
        const [name, value] = [line.slice(0, colon), line.slice(colon + 1).trim()];
        if (name.toLowerCase() === "status") response.statusCode = Number(value.split(" ")[0]);
        else response.setHeader(name, value);
      }
      response.write(head.subarray(end + 4));
      head = undefined;
    });
    backend.once("close", () => response.end());
  }
}

/** An environment in which git sees no configuration but its own. */
export const GIT_ENV: Record<string, string> = {
  PATH: process.env.PATH ?? "",
  HOME: "/nonexistent",
  GIT_CONFIG_NOSYSTEM: "1",
  GIT_CONFIG_GLOBAL: "/dev/null",
  GIT_TERMINAL_PROMPT: "0",
  GIT_AUTHOR_NAME: "t",
  GIT_AUTHOR_EMAIL: "t@example.test",
  GIT_COMMITTER_NAME: "t",
  GIT_COMMITTER_EMAIL: "t@example.test",
};
