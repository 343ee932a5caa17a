import { words } from "../../harness/words.ts";

/** Why a check of the suite fails at a server with other tools than the suite's own, and the checks by scenario. */
export type Baseline = { reason: string; checks: Record<string, string[]> }[];

/** Scenarios with one check, which has the name of its scenario. */
const ofOneCheck = (names: string): Record<string, string[]> =>
  Object.fromEntries(words(names).map((name) => [name, [name]]));

export const BASELINE: Baseline = [
  {
    reason: "requires a tool of the suite's example server",
    checks: {
      "elicitation-sep1034-defaults": ["elicitation-sep1034-general"],
      "elicitation-sep1330-enums": ["elicitation-sep1330-general"],
      "http-custom-header-server-validation": words(`
        sep-2243-server-no-xmcp-tool sep-2243-server-decode-base64 sep-2243-server-validate-param-match
        sep-2243-server-reject-invalid-param-chars sep-2243-server-reject-param-mismatch`),
      "input-required-result-basic-elicitation": ["sep-2322-elicitation-incomplete"],
      "input-required-result-basic-list-roots": ["sep-2322-list-roots-incomplete"],
      "input-required-result-basic-sampling": ["sep-2322-sampling-incomplete"],
      "input-required-result-capability-check": ["sep-2322-respect-client-capabilities"],
      "input-required-result-multi-round": ["sep-2322-multi-round-r1"],
      "input-required-result-multiple-input-requests": ["sep-2322-multiple-inputs-incomplete"],
      "input-required-result-request-state": ["sep-2322-request-state-incomplete"],
      "input-required-result-result-type": ["sep-2322-result-type-included"],
      "input-required-result-tampered-state": ["sep-2322-reject-tampered-state"],
      "json-schema-2020-12": ["json-schema-2020-12-tool-found"],
      "server-stateless": words(`
        sep-2575-server-rejects-undeclared-capability sep-2575-missing-capability-http-400
        sep-2575-http-server-no-independent-requests-on-stream sep-2575-server-no-log-without-loglevel`),
      ...ofOneCheck(`tools-call-audio tools-call-elicitation tools-call-embedded-resource tools-call-error
        tools-call-image tools-call-mixed-content tools-call-sampling tools-call-simple-text tools-call-with-progress`),
    },
  },
  {
    reason: "requires a prompt of the suite's example server",
    checks: {
      ...ofOneCheck("completion-complete"),
      "input-required-result-non-tool-request": ["sep-2322-non-tool-incomplete"],
      ...ofOneCheck(
        `prompts-get-embedded-resource prompts-get-simple prompts-get-with-args prompts-get-with-image`,
      ),
    },
  },
  {
    reason: "requires a resource of the suite's example server",
    checks: ofOneCheck("resources-read-binary resources-read-text resources-templates-read"),
  },
  {
    reason: "subscriptions and logging are not supported",
    checks: ofOneCheck("logging-set-level resources-subscribe resources-unsubscribe tools-call-with-logging"),
  },
  {
    reason: "the tasks extension is not supported",
    checks: {
      "tasks-capability-negotiation": words(`
        tasks-extension-advertised sep-2663-tasks-methods-non-declaring
        sep-2663-server-rejects-undeclared-client tasks-per-request-meta-opt-in`),
      "tasks-dispatch-and-envelope": words(`
        tasks-server-directed-creation-no-hint sep-2663-legacy-task-param-ignored
        tasks-immediate-result-shortcut tasks-result-type-complete-on-non-task-responses
        sep-2663-durable-create-strong-consistency sep-2663-tasks-get-invalid-task-id-32602`),
      "tasks-lifecycle": words(`
        tasks-sync-tool-call sep-2663-result-type-task-on-create sep-2663-tasks-get-status-working
        sep-2663-tasks-get-status-completed sep-2663-tool-error-uses-completed-status
        sep-2663-tasks-get-status-failed sep-2663-cancel-ack-empty-result
        tasks-cancel-terminal-idempotent-ack`),
      "tasks-mrtr-composition": ["sep-2663-mrtr-synchronous-before-task-creation"],
      "tasks-mrtr-input": words(`
        sep-2663-tasks-get-status-input-required tasks-mrtr-tasks-update-resumes
        tasks-mrtr-partial-fulfillment`),
      "tasks-request-headers": words(`
        tasks-headers-tolerate-mcp-method-on-tools-call sep-2663-routing-headers-accepted-on-tasks-get
        sep-2663-server-rejects-mismatched-mcp-name-on-tasks-get`),
      "tasks-request-state-removal": ["tasks-request-state-removal-setup"],
      "tasks-required-task-error": ["sep-2663-server-returns-missing-capability-when-required"],
      "tasks-wire-fields": words(`
        tasks-wire-field-renames tasks-no-early-ttl-expiry tasks-no-related-task-meta-on-inlined-result`),
    },
  },
];
