// Command report runs go test with its arguments, prints what go test prints, and then one line: how many tests were skipped, and what to install
// to run them. With -tools FILE first, it writes into the file which tests need a program that not every machine has.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
)

func main() {
	args, file := os.Args[1:], ""
	if len(args) > 1 && args[0] == "-tools" {
		file, args = args[1], args[2:]
	}
	code, err := run(args, file)
	if err != nil {
		fmt.Fprintln(os.Stderr, "report:", err)
		code = 2
	}
	os.Exit(code)
}

// run runs go test and returns its exit code.
func run(args []string, file string) (int, error) {
	test := exec.Command("go", append([]string{"test", "-json"}, args...)...)
	test.Stderr = os.Stderr
	events, err := test.StdoutPipe()
	if err != nil {
		return 0, err
	}
	if err := test.Start(); err != nil {
		return 0, err
	}
	r := newReport()
	readErr := r.read(events, os.Stdout)
	var exit *exec.ExitError
	if err := test.Wait(); err != nil && !errors.As(err, &exit) {
		return 0, err
	}
	if readErr != nil {
		return 0, readErr
	}
	fmt.Println(r.summary())
	if file != "" {
		if err := os.WriteFile(file, []byte(r.tools()), 0o644); err != nil {
			return 0, err
		}
	}
	return test.ProcessState.ExitCode(), nil
}

// An event is a line of go test -json: see go doc test2json.
type event struct{ Action, Package, Test, Output string }

// A report collects the results of the events.
type report struct {
	packages map[string]*pkg // packages whose tests run
	needs    map[string]bool // package and test that needs a program; false: it did not get one
	remedies map[string]bool // the commands that make skipped tests run
	skipped  int             // tests
	lacking  int             // skipped tests that lack a program
}

func newReport() *report {
	return &report{packages: make(map[string]*pkg), needs: make(map[string]bool), remedies: make(map[string]bool)}
}

// A pkg is a package whose tests run.
type pkg struct {
	output string            // the output of the package
	tests  map[string]string // output of tests that have not passed
}

var (
	needs   = regexp.MustCompile(`this test needs \S+\n`)
	missing = regexp.MustCompile(`\S+ is missing: (.*)\n`)
	frames  = regexp.MustCompile(`(?m)^=== (RUN|PAUSE|CONT|NAME) .*\n`)
)

// read reads the events and prints what go test without -json prints.
func (r *report) read(from io.Reader, to io.Writer) error {
	lines := bufio.NewReader(from)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			var e event
			if json.Unmarshal(line, &e) != nil { // go test prints some errors as text
				e = event{Action: "build-output", Output: string(line)}
			}
			if err := r.add(&e, to); err != nil {
				return err
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// add adds an event. It prints a package's output when its tests have ended.
func (r *report) add(e *event, to io.Writer) error {
	p := r.packages[e.Package]
	if p == nil {
		p = &pkg{tests: make(map[string]string)}
		r.packages[e.Package] = p
	}
	ended := e.Action == "pass" || e.Action == "fail" || e.Action == "skip"
	switch {
	case e.Action == "build-output":
		_, err := io.WriteString(to, e.Output)
		return err
	case e.Action == "output" && e.Test != "":
		p.tests[e.Test] += e.Output
	case e.Action == "output" && e.Output != "PASS\n":
		p.output += e.Output
	case ended && e.Test != "":
		r.end(e, p)
	case ended:
		delete(r.packages, e.Package)
		_, err := io.WriteString(to, p.text())
		return err
	}
	return nil
}

// end counts a test that has ended.
func (r *report) end(e *event, p *pkg) {
	output := p.tests[e.Test]
	lacks := missing.FindStringSubmatch(output)
	if e.Action == "skip" {
		r.skipped++
		if lacks != nil {
			r.lacking++
			r.remedies[lacks[1]] = true
		}
	}
	if needs.MatchString(output) {
		top, _, _ := strings.Cut(e.Test, "/")
		name := e.Package + " " + top
		r.needs[name] = r.needs[name] || lacks == nil
	}
	if e.Action != "fail" {
		delete(p.tests, e.Test)
	}
}

// text returns the output of go test for a package.
func (p *pkg) text() string {
	var b strings.Builder
	for _, test := range slices.Sorted(maps.Keys(p.tests)) { // a test, then its subtests
		b.WriteString(frames.ReplaceAllString(p.tests[test], ""))
	}
	return b.String() + p.output
}

// summary is the last line.
func (r *report) summary() string {
	line := fmt.Sprintf("Skipped tests: %d", r.skipped)
	if r.lacking == 0 {
		return line + ", none because a program is missing."
	}
	remedies := strings.Join(slices.Sorted(maps.Keys(r.remedies)), "; ")
	return fmt.Sprintf("%s, %d of them because a program is missing. To run them: %s.", line, r.lacking, remedies)
}

// tools is a line for each test that needs a program, with its package: "ran", or "lacks" if none of them was found.
func (r *report) tools() string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(r.needs)) {
		state := "lacks"
		if r.needs[name] {
			state = "ran"
		}
		fmt.Fprintln(&b, name, state)
	}
	return b.String()
}
