package main

import (
	"context"
	"errors"
	"fmt"

	"pgfsm/internal/cli"
	"pgfsm/internal/runner/setup"
	"pgfsm/internal/visible"
	"pgfsm/internal/web"
	"pgfsm/traces/ledger"
)

// tokenVariable names the environment variable with the caller's token. A flag would show the token
// to every user of the machine.
const tokenVariable = "PGFSM_TOKEN"

// authorizeCaller returns the owner of the token in PGFSM_TOKEN. It refuses an owner without the
// right to the action.
func (o *openedLedger) authorizeCaller(ctx context.Context, action ledger.Action) (who ledger.Caller, err error) {
	err = o.View(ctx, func(r ledger.Reader) (err error) {
		who, err = o.authorizeReading(ctx, r, action)
		return err
	})
	return who, err
}

// authorizeReading is authorizeCaller for a transaction that is open already.
func (o *openedLedger) authorizeReading(ctx context.Context, r ledger.Reader, action ledger.Action) (who ledger.Caller, err error) {
	text := o.w.env(tokenVariable)
	if text == "" {
		return who, fmt.Errorf("%s is not set, so pgfsm cannot identify you; pgfsm token create --role ROLE --name NAME prints a token, to which you set the variable", tokenVariable)
	}
	if who, err = o.authenticatePerson(ctx, r, text); errors.Is(err, web.ErrNoCredentials) {
		who, err = ledger.Authenticate(r, text, o.store.Now())
	}
	if err != nil {
		return ledger.Caller{}, err
	}
	return who, who.Allow(action)
}

// authenticatePerson returns the owner of an identity provider's token. For any other token, the
// error is [web.ErrNoCredentials].
func (o *openedLedger) authenticatePerson(ctx context.Context, r ledger.Reader, text string) (who ledger.Caller, err error) {
	if o.loaded == nil {
		return who, web.ErrNoCredentials
	}
	providers := setup.Identity(o.loaded, nil)
	if providers == nil {
		return who, web.ErrNoCredentials
	}
	if who, err = providers.Person(ctx, o.loaded.Serve.AdminOrigin(), text); err != nil {
		return who, err
	}
	return who, who.CheckNotBlocked(r)
}

// authorizeManager returns the caller for managing tokens and pruning: the owner of the token or,
// without a token, the user of the operating system.
func (o *openedLedger) authorizeManager(ctx context.Context, r ledger.Reader) (ledger.Caller, error) {
	if o.w.env(tokenVariable) == "" {
		return ledger.LocalUser(localActor()), nil
	}
	return o.authorizeReading(ctx, r, ledger.ActManage)
}

// orRefused prints a refusal of the ledger and returns the exit code no. Other errors are returned
// unchanged.
func orRefused(w world, asJSON bool, err error) error {
	var r *ledger.Refusal
	if !errors.As(err, &r) {
		return err
	}
	if asJSON {
		return errors.Join(cli.PrintJSON(w.stdout, cli.Document("ok", false, "code", r.Code, "reason", err.Error())),
			cli.Exit(cli.ExitNo))
	}
	fmt.Fprintf(w.stderr, "pgfsm: refused, %s: %s\n", r.Code, visible.Error(err))
	return cli.Exit(cli.ExitNo)
}
