import type { Problem, ProblemCode } from "./api.ts";

/** Those of the API, of its token endpoint (RFC 6749 §5.2), and of a response from neither, such as a proxy's. */
export type ErrorCode =
  | ProblemCode
  | "invalid_client"
  | "invalid_grant"
  | "invalid_scope"
  | "unauthorized_client"
  | "unexpected_response";

export type FieldError = NonNullable<Problem["errors"]>[number];

type ErrorBody = Partial<Problem> & { error?: string; error_description?: string };

/** An error response of the API, or of its token endpoint. */
export class LinkgateError extends Error {
  override readonly name = "LinkgateError";
  readonly status: number;
  /** One of this version; a newer server may have others. */
  readonly code: ErrorCode;
  /** An explanation for users. */
  readonly detail: string;
  /** The invalid fields. */
  readonly errors: FieldError[];
  /** Identifies the request in the server's log. */
  readonly requestId: string | undefined;

  constructor({ status, headers }: Response, body: unknown) {
    const { error, error_description, code = error, detail, errors = [] } = (body ?? {}) as ErrorBody;
    const text = detail ?? error_description ?? `The server responded with ${status}.`;
    super(text);
    this.status = status;
    this.code = (code ?? "unexpected_response") as ErrorCode;
    this.detail = text;
    this.errors = errors;
    this.requestId = headers.get("X-Request-Id") ?? undefined;
  }
}
