package gates

import (
	"fmt"
	"strings"

	"pgfsm/policy"
)

// A screenCase is a request. Core is its part that must be refused; a request without a core must pass.
type screenCase struct {
	ID   string `json:"id"`
	Text string `json:"text"`
	Core string `json:"core"`
}

// screening compares the input policy (INV-0), with the default rules, with a table: requests that must be refused, plainly and
// in every disguise, and requests that must pass.
func screening(e *evaluation) (Suite, error) {
	cases, err := load[screenCase]("policy_gate")
	if err != nil {
		return Suite{}, err
	}
	b, err := policy.Compile(content())
	if err != nil {
		return Suite{}, err
	}
	got := func(in []byte) string {
		if v := e.subject.screen(b, string(in)); !v.Allows() {
			return string(v.Code)
		}
		return passes
	}
	var trials []trial
	harmful := 0
	for i := range cases {
		c := &cases[i]
		if c.Core == "" {
			trials = append(trials, trial{c.ID, passes, []byte(c.Text), got})
			continue
		}
		harmful++
		for _, d := range disguises {
			trials = append(trials, trial{c.ID + "/" + d.name, string(policy.CodeInputDenied), []byte(d.apply(c.Text)), got})
		}
	}
	for _, c := range bounds() {
		c.got = got
		trials = append(trials, c)
	}
	return e.table(fmt.Sprintf("requests: %d that must be refused, each in %d disguises, %d that must pass, and some of odd size or encoding",
		harmful, len(disguises), len(cases)-harmful), trials), nil
}

const passes = "passes"

// bounds are requests whose size or encoding decides.
func bounds() []trial {
	large := func(n int) []byte { return []byte(strings.Repeat("a", n)) }
	return []trial{
		{id: "size_at_the_limit", want: passes, input: large(policy.DefaultInputBytes)},
		{id: "size_one_past", want: string(policy.CodeInputTooLarge), input: large(policy.DefaultInputBytes + 1)},
		{id: "not_utf8", want: string(policy.CodeInputNotText), input: []byte("policy \xff")},
		{id: "half_a_character", want: string(policy.CodeInputNotText), input: []byte("caf\xc3")},
		{id: "surrogate_as_bytes", want: string(policy.CodeInputNotText), input: []byte("a\xed\xa0\x80b")},
		{id: "overlong_slash", want: string(policy.CodeInputNotText), input: []byte("..\xc0\xaf")},
	}
}
