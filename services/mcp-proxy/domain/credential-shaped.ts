const SHAPE =
  /^(authorization|proxy-authorization|cookie|set-cookie|x-api-key|api-key|x-goog-.*|x-amz-.*|x-auth.*|.*-(api-key|apikey|access-key|token|secret|signature|authorization))$/;

/** True for the name of a header, in lower case, in which a caller could bring a credential of its own (case A025). */
export function isCredentialShaped(name: string): boolean {
  return SHAPE.test(name);
}
