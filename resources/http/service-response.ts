/** The response of an operation. REST sends all of it, MCP only the body. */
export type ServiceResponse = {
  status: number;
  headers?: Record<string, string>;
  body: Record<string, unknown>;
};

/** Only a deletion has no body. */
export type OperationResponse = ServiceResponse | { status: 204; headers?: never; body?: undefined };
