/** What a thread tells about the test file that it runs. */
export type Message = {
  type: string;
  testFile?: string;
  title?: string;
  skip?: boolean;
  logs?: string[];
  stack?: string | undefined;
  error?: Failure | undefined;
  text?: string;
  /** Of a test that takes longer than others, in ms. */
  period?: number;
  /** Of a file that ended without finishing. */
  reason?: string;
};

/** Why a test failed. */
export type Failure = {
  name: string;
  message: string | undefined;
  /** Whether an assertion of ava failed, not the code of the test itself. */
  isAssertion: boolean;
  stack: string | undefined;
  line: number | undefined;
  details: string[];
  errors: Failure[];
};

/** What ava's runner tells. */
export type RunnerEvent = Message & { err?: SerializedError };

/** An error as ava serializes it. */
type SerializedError = {
  type: string;
  name?: string;
  message?: string;
  assertion?: string | null;
  stack?: string;
  source?: { line: number } | null;
  formattedDetails?: { label: string; formatted: string }[];
  formattedError?: string;
  formattedCause?: string | null;
  errors?: SerializedError[];
};

/** Returns what can be sent, and the report needs, of an event. */
export function toMessage({ err, ...event }: RunnerEvent): Message {
  return { ...event, error: err && toFailure(err) };
}

export function toFailure(error: SerializedError): Failure {
  const { formattedDetails = [], formattedCause, errors = [] } = error;
  const details = formattedDetails.map(({ label, formatted }) => `${label}\n\n${formatted}`);
  return {
    name: error.name ?? "",
    message: error.message ?? error.formattedError,
    isAssertion: Boolean(error.assertion),
    stack: error.stack,
    line: error.source?.line,
    // The reason of a rejection is a detail, too.
    details:
      formattedCause && !details.join("").includes(formattedCause) ? [...details, formattedCause] : details,
    errors: errors.map(toFailure),
  };
}
