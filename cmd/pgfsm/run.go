package main

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"pgfsm/internal/runner/explain"
	"pgfsm/policy"
	"pgfsm/states"
	"pgfsm/traces"
)

// runOptions are the flags of the commands that take something through the machine.
type runOptions struct {
	options
	task string
	wait time.Duration // for the decision about a held call; 0: not at all
}

func (o *runOptions) register(cmd *cobra.Command) {
	o.options.register(cmd)
	o.registerGrants(cmd)
	cmd.Flags().StringVar(&o.task, "task", "", "the task whose calls grants count; without a ledger its runs wait for each other")
	cmd.Flags().DurationVar(&o.wait, "wait", 0,
		"if the call is held, wait this long for the decision, such as 5m (needs a ledger)")
}

// check returns an error for values that a mistake in a script produces, such as an empty task.
func (o *runOptions) check(cmd *cobra.Command) error {
	if cmd.Flags().Changed("wait") && o.wait <= 0 {
		return fmt.Errorf("--wait: %s is not a positive duration; write one such as 5m", o.wait)
	}
	if !cmd.Flags().Changed("task") {
		return nil
	}
	if err := traces.CheckTaskID(o.task); err != nil {
		return fmt.Errorf("--task: %w", err)
	}
	return nil
}

// newRun makes the command pgfsm run.
func newRun(w world) *cobra.Command {
	var o runOptions
	cmd := &cobra.Command{
		Use:   "run QUESTION",
		Short: "Answer a question with at most one tool call",
		Long: `run takes the question through the machine: input policy, live discovery, plan, schema, allowlist, policy, at
most one tool call, typed output, evidence-locked summary. Without a configuration it uses the embedded demo.
QUESTION "-" reads standard input.

With a ledger in the configuration, a call that a policy holds waits in the ledger. run names the approvers and exits
with 3. After they have approved the call, pgfsm resume makes it. With --wait, run waits for the decision and then makes
the call itself.

If one of the operator's routes matches, the route makes the plan. Otherwise the model makes it, if planner.llm or
LLM_BASE_URL, LLM_MODEL and LLM_API_KEY name a model. --planner router or llm uses only routes or only the model.`,
		Example: `  pgfsm run "Summarize policy policy-002"
  pgfsm run -c pgfsm.yaml --json "Search for \"PII Logging\""
  pgfsm run --grant read-only.yaml --task nightly-42 "Fetch document doc-001"`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			text := []byte(strings.Join(args, " "))
			if len(args) == 1 && args[0] == "-" {
				var err error
				if text, err = readQuestion(w.stdin); err != nil {
					return err
				}
			}
			if len(text) == 0 {
				return errors.New("the question is empty")
			}
			if err := o.check(cmd); err != nil {
				return err
			}
			return o.with(w, func(a *app) error {
				return a.execute(cmd.Context(), states.KindAsk, text, &o)
			})
		},
	}
	o.register(cmd)
	cmd.Flags().StringVar(&o.planner, "planner", "", "the planner: auto, router or llm (default: planner.mode)")
	return cmd
}

// readQuestion reads a whole question. A question that is too long for every configuration is refused before there is a run.
func readQuestion(stdin io.Reader) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(stdin, policy.MaxInputBytes+1))
	if err == nil && len(text) > policy.MaxInputBytes {
		err = fmt.Errorf("standard input has more than %d bytes, which no configuration lets pass", policy.MaxInputBytes)
	}
	return text, err
}

func newCall(w world) *cobra.Command {
	var o runOptions
	cmd := &cobra.Command{
		Use:   "call SERVER TOOL ARGUMENTS",
		Short: "Make one tool call yourself, through all gates",
		Long: `call takes your plan through the machine, and asks no planner. It starts only SERVER, or all servers if none has this
name. ARGUMENTS is a JSON object.
The gates judge the call like an agent's: the arguments must conform to the tool's schema, and the allowlist, grants,
risk rules and policies decide. An input rule judges the call only if the rule's key "on" contains call.`,
		Example: `  pgfsm call mcp-sharepoint fetch_sharepoint_doc '{"doc_id": "doc-001"}'`,
		Args:    cobra.ExactArgs(3),
		RunE: func(cmd *cobra.Command, args []string) error {
			plan, err := explain.Plan(args[0], args[1], "ARGUMENTS", args[2])
			if err != nil {
				return err
			}
			if err := o.check(cmd); err != nil {
				return err
			}
			return o.with(w, func(a *app) error {
				return a.execute(cmd.Context(), states.KindCall, plan, &o)
			})
		},
	}
	o.register(cmd)
	return cmd
}
