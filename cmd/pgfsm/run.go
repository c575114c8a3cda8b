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

// runOptions are the flags of the commands that start a run.
type runOptions struct {
	options
	task string
	wait time.Duration // maximum wait for the decision about a held call; 0: do not wait
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
		Use:  "run QUESTION",
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
			return o.withApp(w, func(a *app) error {
				return a.execute(cmd.Context(), states.KindAsk, text, &o)
			})
		},
	}
	o.register(cmd)
	cmd.Flags().StringVar(&o.planner, "planner", "", "the planner: auto, router or llm (default: planner.mode)")
	return cmd
}

// readQuestion reads a whole question. It refuses a question that is too long for every configuration, before a run begins.
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
		Use:  "call SERVER TOOL ARGUMENTS",
		Args: cobra.ExactArgs(3),
		RunE: func(cmd *cobra.Command, args []string) error {
			plan, err := explain.Plan(args[0], args[1], "ARGUMENTS", args[2])
			if err != nil {
				return err
			}
			if err := o.check(cmd); err != nil {
				return err
			}
			return o.withApp(w, func(a *app) error {
				return a.execute(cmd.Context(), states.KindCall, plan, &o)
			})
		},
	}
	o.register(cmd)
	return cmd
}
