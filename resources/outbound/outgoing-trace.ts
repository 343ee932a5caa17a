/** Runs a request to another server in a span. `send` gets the headers that pass the trace on, if any. */
export type TraceOutgoing = <Answer extends { status: number }>(
  request: { method: string; url: string | URL },
  send: (headers: Record<string, string>) => Promise<Answer>,
) => Promise<Answer>;

/** Runs requests without a span. */
export const untraced: TraceOutgoing = (_request, send) => send({});
