import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
import type { Answer } from "../core/pipeline.ts";
import { count, flag, text } from "../core/request.ts";
import type { Vault } from "../core/vault.ts";
import { badRequest, VaultError } from "../core/vault-error.ts";
import { healthAnswer, sealStatus } from "./health.ts";

type Data = Readonly<Record<string, unknown>>;
type Endpoint = (data: Data) => Answer;

/** OpenEndpoints are those of `sys/` that need no token and answer while the vault is sealed. They are not audited. */
export class OpenEndpoints {
  readonly #vault: Vault;
  readonly #endpoints: Readonly<Record<string, Readonly<Record<string, Endpoint>>>>;
  #attempt: { nonce: string; otp: Buffer } | undefined;

  constructor(vault: Vault) {
    this.#vault = vault;
    const health: Endpoint = (query) => healthAnswer(vault, query);
    const init: Endpoint = (data) => this.#init(data);
    const unseal: Endpoint = (data) => this.#unseal(data);
    const begin: Endpoint = () => this.#begin();
    const update: Endpoint = (data) => this.#update(data);
    this.#endpoints = {
      "sys/health": { GET: health, HEAD: health },
      "sys/seal-status": { GET: () => ({ status: 200, body: sealStatus(vault) }) },
      "sys/init": {
        GET: () => ({ status: 200, body: { initialized: vault.isInitialized } }),
        PUT: init,
        POST: init,
      },
      "sys/unseal": { PUT: unseal, POST: unseal },
      "sys/leader": { GET: () => this.#leader() },
      "sys/generate-root/attempt": {
        GET: () => this.#attemptStatus(undefined),
        PUT: begin,
        POST: begin,
        DELETE: () => this.#cancel(),
      },
      "sys/generate-root/update": { PUT: update, POST: update },
    };
  }

  /** find gives the endpoint of a path and method, or undefined when the path is not one of these. */
  find(path: string, method: string): Endpoint | undefined {
    const methods = Object.hasOwn(this.#endpoints, path) ? this.#endpoints[path] : undefined;
    if (!methods) return undefined;
    const endpoint = Object.hasOwn(methods, method) ? methods[method] : undefined;
    if (!endpoint) throw new VaultError(405);
    return endpoint;
  }

  #init(data: Data): Answer {
    const shares = count(data, "secret_shares") ?? 0;
    const threshold = count(data, "secret_threshold") ?? 0;
    if (this.#vault.isInitialized) throw badRequest("Vault is already initialized");
    if (shares !== 1 || threshold !== 1) {
      throw badRequest("the development vault has one key share and a threshold of one");
    }
    const { unsealKey, rootToken } = this.#vault.initialize();
    const body = {
      keys: [unsealKey.toString("hex")],
      keys_base64: [unsealKey.toString("base64")],
      root_token: rootToken,
    };
    unsealKey.fill(0);
    return { status: 200, body };
  }

  #unseal(data: Data): Answer {
    if (flag(data, "reset")) return { status: 200, body: sealStatus(this.#vault) };
    const share = text(data, "key");
    if (share === "") {
      throw badRequest("'key' must be specified in request body as JSON, or 'reset' set to true");
    }
    this.#vault.unseal(share);
    return { status: 200, body: sealStatus(this.#vault) };
  }

  #leader(): Answer {
    if (this.#vault.isSealed) throw new VaultError(503, "Vault is sealed");
    return { status: 200, body: { ha_enabled: false, is_self: false, leader_address: "" } };
  }

  #begin(): Answer {
    this.#needsUnsealed();
    if (this.#attempt) throw badRequest("root generation already in progress");
    const otp = Buffer.from(randomBytes(64).toString("hex").slice(0, ROOT_TOKEN_LENGTH));
    this.#attempt = { nonce: randomBytes(16).toString("hex"), otp };
    return this.#attemptStatus(otp);
  }

  #cancel(): Answer {
    this.#attempt = undefined;
    return { status: 204, body: undefined };
  }

  #update(data: Data): Answer {
    this.#needsUnsealed();
    const attempt = this.#attempt;
    if (!attempt) throw badRequest("no root generation in progress");
    if (!same(attempt.nonce, text(data, "nonce"))) throw badRequest("incorrect nonce supplied");
    // One try for each attempt, as with a threshold of one.
    this.#attempt = undefined;
    const token = Buffer.from(this.#vault.createRoot(text(data, "key")));
    const encoded = Buffer.from(token.map((byte, index) => byte ^ (attempt.otp[index] as number)));
    const encodedText = encoded.toString("base64").replace(/=+$/, "");
    return {
      status: 200,
      body: {
        nonce: attempt.nonce,
        started: true,
        progress: 1,
        required: 1,
        complete: true,
        encoded_token: encodedText,
        encoded_root_token: encodedText,
        pgp_fingerprint: "",
        otp: "",
        otp_length: ROOT_TOKEN_LENGTH,
      },
    };
  }

  #attemptStatus(otp: Buffer | undefined): Answer {
    this.#needsUnsealed();
    return {
      status: 200,
      body: {
        nonce: this.#attempt?.nonce ?? "",
        started: this.#attempt !== undefined,
        progress: 0,
        required: 1,
        complete: false,
        encoded_token: "",
        encoded_root_token: "",
        pgp_fingerprint: "",
        otp: otp?.toString() ?? "",
        otp_length: ROOT_TOKEN_LENGTH,
      },
    };
  }

  #needsUnsealed(): void {
    if (this.#vault.isSealed) throw new VaultError(503, "Vault is sealed");
  }
}

/** `hvs.` and 32 letters. */
const ROOT_TOKEN_LENGTH = 36;

function same(a: string, b: string): boolean {
  const hash = (value: string) => createHash("sha256").update(value).digest();
  return timingSafeEqual(hash(a), hash(b));
}
