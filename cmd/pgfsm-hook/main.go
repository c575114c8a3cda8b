// Command pgfsm-hook is the hook of a coding agent: it reads one event of the client from standard
// input, asks the gateway, and prints the answer in the client's form.
//
// It is a program of its own, because a client starts it for every call: it starts within
// milliseconds. Exit codes: 0 answered, 1 the event was not delivered and the client goes on, 2 the
// call is denied because the hook failed.
package main

import (
	"context"
	"os"

	"pgfsm/internal/hook"
)

func main() {
	os.Exit(hook.Run(context.Background(), os.Args[1:], os.LookupEnv, os.Stdin, os.Stdout, os.Stderr))
}
