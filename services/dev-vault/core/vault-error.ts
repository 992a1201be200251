/** VaultError is an answer that says no: Vault's status code and its `{"errors": […]}` body. */
export class VaultError extends Error {
  readonly status: number;
  readonly errors: readonly string[];

  constructor(status: number, ...errors: string[]) {
    super(errors.join("; "));
    this.name = "VaultError";
    this.status = status;
    this.errors = errors;
  }
}

/** wrapped gives a message the way Vault prints a list of one error. */
export function wrapped(message: string): string {
  return `1 error occurred:\n\t* ${message}\n\n`;
}

/** badRequest is the 400 of a request that cannot be carried out as asked. */
export function badRequest(message: string): VaultError {
  return new VaultError(400, message);
}

/** notFound is the 404 of a thing that is not there; Vault sends it without a message. */
export function notFound(): VaultError {
  return new VaultError(404);
}

/** denied is the 403 of a token that is known but has no right to the path. */
export function denied(): VaultError {
  return new VaultError(403, wrapped("permission denied"));
}
