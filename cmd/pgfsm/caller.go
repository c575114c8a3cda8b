package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"pgfsm/policy/visible"
	"pgfsm/traces/ledger"
)

// tokenVariable is where a caller's token stands. Not in a flag: everybody can see the flags of a process.
const tokenVariable = "PGFSM_TOKEN"

// caller says who PGFSM_TOKEN stands for, and that they may do something.
func caller(ctx context.Context, w world, v ledger.Viewer, action ledger.Action) (who ledger.Caller, err error) {
	text := w.env(tokenVariable)
	if text == "" {
		return who, fmt.Errorf("%s is not set, so nobody knows who you are; pgfsm token create makes a token", tokenVariable)
	}
	err = v.View(ctx, func(r ledger.Reader) (err error) {
		who, err = ledger.Authenticate(r, text, time.Now())
		return err
	})
	if err != nil {
		return ledger.Caller{}, err
	}
	return who, who.Allow(action)
}

// manager is who manages tokens and prunes: whoever PGFSM_TOKEN stands for, or the user of the operating system.
func manager(ctx context.Context, w world, v ledger.Viewer) (ledger.Caller, error) {
	if w.env(tokenVariable) == "" {
		return ledger.Local(actor()), nil
	}
	return caller(ctx, w, v, ledger.ActManage)
}

// orRefused tells people, or programs, of a refusal of the ledger, and ends the command with no. Other errors stay what they
// are.
func orRefused(w world, asJSON bool, err error) error {
	var r *ledger.Refusal
	if !errors.As(err, &r) {
		return err
	}
	if asJSON {
		err := printJSON(w.stdout, struct {
			SchemaVersion int                `json:"schema_version"`
			OK            bool               `json:"ok"`
			Code          ledger.RefusalCode `json:"code"`
			Reason        string             `json:"reason"`
		}{schemaVersion, false, r.Code, err.Error()})
		if err != nil {
			return err
		}
		return exit(exitNo)
	}
	fmt.Fprintf(w.stderr, "pgfsm: refused, %s: %s\n", r.Code, visible.Text(err.Error()))
	return exit(exitNo)
}
