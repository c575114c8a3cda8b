package hook

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"pgfsm/internal/visible"
)

// Limits of the program.
const (
	// maxInput is the longest input of a client in bytes. It is larger than [MaxBytes], because the
	// input after a call contains its result, which the event may leave out.
	maxInput = 16 << 20
	// maxToken is the longest file with a token in bytes.
	maxToken = 16 << 10
	// maxQuoted is the longest text of a client that a message quotes, in bytes.
	maxQuoted = 100
	// maxReason is the longest reason that the program passes on, in bytes.
	maxReason = 4 << 10

	// DefaultTimeout is the longest time from the start to the answer.
	DefaultTimeout = 5 * time.Second
)

// Exit codes of the program. A client that waits for a decision takes exit code 2 for a denial.
const (
	exitDone      = 0
	exitNotTold   = 1 // the event was not delivered, and the client goes on
	exitCallIsOff = 2
)

// TokenVariable is the variable that holds the token if there is no file with it.
const TokenVariable = "PGFSM_HOOK_TOKEN"

// DeniedText begins the reason of a denial, unless the call is held.
const DeniedText = "pgfsm denied this call"

// heldText begins the reason of a denial whose call waits for an approver.
const heldText = "pgfsm holds this call"

// heldCode is the code of a held call.
const heldCode = "approval_required"

// tokenRemedy ends a message about a token that is missing or not accepted.
const tokenRemedy = "make one with pgfsm token create --role hook"

// Usage is the command line after the name of the program.
const Usage = "CLIENT --gateway URL|unix:SOCKET [--token-file FILE] [--observe] [--timeout 5s]"

// An outcome is what the program prints and returns.
type outcome struct {
	stdout string
	stderr string // a line, without its end; empty: none
	code   int
}

// Run reads one event of a client, asks the gateway, and answers in the client's form. It returns
// the exit code. Whatever fails, a call is denied; an event that is no question never blocks the
// client.
func Run(ctx context.Context, args []string, getenv func(string) (string, bool), stdin io.Reader, stdout, stderr io.Writer) int {
	o := answer(ctx, args, getenv, stdin)
	if o.stderr != "" {
		fmt.Fprintf(stderr, "pgfsm-hook: %s\n", visible.Line(o.stderr))
	}
	if o.stdout == "" {
		return o.code
	}
	if _, err := io.WriteString(stdout, o.stdout+"\n"); err != nil {
		fmt.Fprintf(stderr, "pgfsm-hook: the answer cannot be written: %s\n", visible.Error(err))
		return exitCallIsOff
	}
	return o.code
}

// answer runs the program up to its output.
func answer(ctx context.Context, args []string, getenv func(string) (string, bool), stdin io.Reader) outcome {
	if len(args) == 0 {
		return outcome{stderr: "usage: pgfsm-hook " + Usage, code: exitCallIsOff}
	}
	f := findForm(args[0])
	if f == nil {
		return outcome{stderr: errUnknownClient(args[0]).Error(), code: exitCallIsOff}
	}
	o, optionsErr := readOptions(args[1:], getenv)

	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	type reading struct {
		event Event
		err   error
	}
	read := make(chan reading, 1)
	go func() { // a client may leave standard input open
		var r reading
		r.event, r.err = readEvent(f, stdin)
		read <- r
	}()

	var r reading
	select {
	case r = <-read:
	case <-ctx.Done():
		r.err = errors.New("the client did not end its input in time")
	}
	if err := errors.Join(optionsErr, r.err); err != nil {
		return f.failed(r.event.Kind, o.observe, err)
	}

	r.event.Observe = o.observe
	a, err := post(ctx, o, r.event)
	if err != nil {
		return f.failed(r.event.Kind, o.observe, err)
	}
	if r.event.Kind != KindCall || a.Allowed || o.observe {
		return outcome{stdout: f.noObjection(r.event.Kind)}
	}
	return outcome{stdout: f.denial(reasonOf(a))}
}

// options are what the command line says.
type options struct {
	gateway, token string
	observe        bool
	timeout        time.Duration
}

func readOptions(args []string, getenv func(string) (string, bool)) (options, error) {
	var o options
	var tokenFile string
	flags := flag.NewFlagSet("pgfsm-hook", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.StringVar(&o.gateway, "gateway", "", "")
	flags.StringVar(&tokenFile, "token-file", "", "")
	flags.BoolVar(&o.observe, "observe", false, "")
	flags.DurationVar(&o.timeout, "timeout", DefaultTimeout, "")
	err := flags.Parse(args)

	switch {
	case err != nil:
	case flags.NArg() > 0:
		err = fmt.Errorf("unexpected argument %s; usage: pgfsm-hook %s", visible.Quote(visible.Clip(flags.Arg(0), maxQuoted)), Usage)
	case o.gateway == "":
		err = errors.New("--gateway is missing; usage: pgfsm-hook " + Usage)
	case o.timeout <= 0:
		err = fmt.Errorf("--timeout %s is no time", o.timeout)
	default:
		o.token, err = readToken(tokenFile, getenv)
	}
	if o.timeout <= 0 {
		o.timeout = DefaultTimeout
	}
	return o, err
}

// readToken reads the token from a file, or from the environment if no file is named.
func readToken(path string, getenv func(string) (string, bool)) (string, error) {
	token, _ := getenv(TokenVariable)
	from := TokenVariable
	if path != "" {
		file, err := os.Open(path)
		if err != nil {
			return "", fmt.Errorf("the token cannot be read: %w; %s", err, tokenRemedy)
		}
		defer file.Close()
		text, err := io.ReadAll(io.LimitReader(file, maxToken))
		if err != nil {
			return "", fmt.Errorf("the token cannot be read: %w", err)
		}
		token, from = string(text), path
	}
	token = strings.TrimSpace(token)
	switch {
	case token == "" && path == "":
		return "", errors.New("there is no token: name its file with --token-file, or set " + TokenVariable)
	case token == "" || !visible.PlainWord(token):
		return "", fmt.Errorf("%s holds no token; %s", from, tokenRemedy)
	}
	return token, nil
}

func readEvent(f *form, stdin io.Reader) (Event, error) {
	input, err := io.ReadAll(io.LimitReader(stdin, maxInput+1))
	if err != nil {
		return Event{}, fmt.Errorf("the input cannot be read: %w", err)
	}
	if len(input) > maxInput {
		return Event{}, fmt.Errorf("the input is longer than %d bytes", maxInput)
	}
	return Translate(f.name, input)
}

// failed is the outcome when the gateway's answer is not known.
func (f *form) failed(kind string, observe bool, err error) outcome {
	o := outcome{stderr: err.Error()}
	switch {
	case observe:
		o.stdout = f.noObjection(kind)
	case kind == KindCall || kind == kindNone:
		o.stdout = f.denial(DeniedText + ", because its hook failed: " + visible.Clip(visible.Error(err), maxReason))
		o.code = exitCallIsOff
	default:
		o.stdout = f.noObjection(kind)
		o.code = exitNotTold
	}
	return o
}

func (f *form) noObjection(kind string) string {
	if text := f.proceed[kind]; text != "" {
		return text
	}
	return noObjection
}

func (f *form) denial(reason string) string {
	text, err := json.Marshal(f.deny(reason))
	if err != nil {
		panic("a denial of ours is not JSON: " + err.Error())
	}
	return string(text)
}

// reasonOf returns the reason of a denial for the client's model and user. It is never blank: Codex
// would let the call run.
func reasonOf(a Answer) string {
	reason := "the gateway gives no reason"
	if !visible.Blank(a.Reason) {
		reason = visible.Lines(visible.Cut(strings.TrimSpace(a.Reason), maxReason, "…"))
	}

	var about []string
	if a.Code != "" {
		about = append(about, visible.Text(visible.Clip(a.Code, maxQuoted)))
	}
	if a.Run != "" && !strings.Contains(reason, a.Run) {
		about = append(about, "run "+visible.Text(visible.Clip(a.Run, maxQuoted)))
	}
	held := a.Decide != "" || a.Code == heldCode
	text := DeniedText + ": " + reason
	if held {
		text = heldText + ": " + reason
	}
	if len(about) > 0 {
		text += " (" + strings.Join(about, ", ") + ")"
	}
	if a.Decide != "" && !strings.Contains(reason, a.Decide) {
		text += "\nAn approver decides at " + visible.Text(visible.Clip(a.Decide, maxReason)) + "."
	}
	if held {
		text += "\nAfter the approval, make the same call again, once: in this session, with every argument the same, also a description."
	}
	return text
}

func errUnknownClient(name string) error {
	names := Clients()
	slices.Sort(names)
	return fmt.Errorf("%s is no client with hooks that this version knows; it knows %s",
		visible.Quote(visible.Clip(name, maxQuoted)), strings.Join(names, ", "))
}
